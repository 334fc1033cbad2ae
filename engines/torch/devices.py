"""The devices that this Python can compute on, for `petrel engine check`."""

import os

import torch


def devices(kind):
    """Name and bytes of memory of each. `kind`: cpu, or cuda, which is also torch's word for the GPUs of AMD."""
    if kind == "cpu":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return [{"name": torch.backends.cpu.get_cpu_capability(), "memory": memory}]
    found = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    return [{"name": one.name, "memory": one.total_memory} for one in found]
