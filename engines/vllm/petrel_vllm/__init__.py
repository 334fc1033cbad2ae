"""
petrel's sampler on vLLM: the calls of the port of samplers, over the channel of the torch engine's ranks. vLLM is told
what it is to be before it is imported.
"""

import os

os.environ.update(
    {
        # Its core runs in this process, so that the end of one is the end of both.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_USE_V2_MODEL_RUNNER": "0",
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_PLUGINS": "",
        "VLLM_LOGGING_LEVEL": "ERROR",
    }
)
