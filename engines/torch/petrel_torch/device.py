"""The device of a rank, the group of ranks, and what both need to repeat their bits."""

import os
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Callable

import torch
import torch.distributed as dist
import transformers
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh


@dataclass
class Group:
    rank: int
    ranks: int
    device: torch.device
    mesh: DeviceMesh
    tick: Callable[[], None] = field(default=lambda: None)


def join(settings):
    """Enters the group of `settings`: rank, ranks, device, threads, deterministic, rendezvous (a file), seconds."""
    kind, rank, ranks = settings["device"], settings["rank"], settings["ranks"]
    if settings["deterministic"]:
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False
        torch.backends.cudnn.benchmark = False
    # A bar of progress is no line of a log.
    transformers.utils.logging.disable_progress_bar()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.set_num_threads(settings["threads"])
    if kind == "cuda":
        torch.cuda.set_device(rank)
    device = torch.device(kind, rank) if kind == "cuda" else torch.device("cpu")
    dist.init_process_group(
        "nccl" if kind == "cuda" else "gloo",
        store=dist.FileStore(settings["rendezvous"], ranks),
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=settings["seconds"]),
        **({"device_id": device} if kind == "cuda" else {}),
    )
    return Group(rank, ranks, device, init_device_mesh(kind, (ranks,)))


def facts(group):
    """What the bits of a result depend on. All ranks of a group must say the same."""
    if group.device.type == "cuda":
        properties = torch.cuda.get_device_properties(group.device)
        name, memory = properties.name, properties.total_memory
    else:
        name, memory = torch.backends.cpu.get_cpu_capability(), 0
    return {
        "pid": os.getpid(),
        "device": name,
        "memory": memory,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "transformers": transformers.__version__,
    }
