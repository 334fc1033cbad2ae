"""The device of a rank, the group of ranks, and what both need to repeat their bits."""

import os
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Callable

import torch
import torch.distributed as dist
import transformers

from .division import Division, Meshes
from .memory import available_bytes


@dataclass
class Group:
    rank: int
    ranks: int
    device: torch.device
    # None for a process that is no part of a group of torch's.
    meshes: Meshes | None
    tick: Callable[[], None] = field(default=lambda: None)


def join(settings):
    """
    Enters the group of `settings`: rank, ranks, device, threads, deterministic, rendezvous (a file), seconds, and what
    Division has.
    """
    kind, rank, ranks = settings["device"], settings["rank"], settings["ranks"]
    if settings["deterministic"]:
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False
        torch.backends.cudnn.benchmark = False
        # Which kernel attends would depend on the lengths in a pack; cuDNN's does not promise its bits.
        torch.backends.cuda.enable_cudnn_sdp(False)
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
    division = Division(rank, ranks, **settings.get("division", {}))
    return Group(rank, ranks, device, Meshes(kind, division))


def alone(settings):
    """One process whose library makes its own groups."""
    transformers.utils.logging.disable_progress_bar()
    device = torch.device("cuda", 0) if settings["device"] == "cuda" else torch.device("cpu")
    return Group(0, 1, device, None)


def free_bytes(group):
    """Memory of the device that this rank may still take. On a processor the ranks share what is free."""
    device = group.device
    if device.type == "cpu":
        return available_bytes() // group.ranks
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def facts(group):
    """What the bits of a result depend on. All ranks of a group must say the same."""
    if group.device.type == "cuda":
        properties = torch.cuda.get_device_properties(group.device)
        name, memory = properties.name, properties.total_memory
    else:
        name, memory = torch.backends.cpu.get_cpu_capability(), 0
    return {
        "pid": os.getpid(),
        "gpus": torch.cuda.device_count() if group.device.type == "cuda" else 0,
        "device": name,
        "memory": memory,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "transformers": transformers.__version__,
    }
