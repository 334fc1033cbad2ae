"""Prints what this Python has, as JSON: the versions and devices on which results depend."""

import json
import platform

import torch
import transformers

cuda = torch.cuda.is_available()
print(
    json.dumps(
        {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            # The version of CUDA or ROCm for which torch is built.
            "cuda": torch.version.cuda,
            "rocm": torch.version.hip,
            "cpu": torch.backends.cpu.get_cpu_capability(),
            "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())] if cuda else [],
        }
    )
)
