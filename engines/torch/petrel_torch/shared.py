"""Memory that the worker and all ranks have: a file without a name. The worker alone lets it grow."""

import mmap
import os

import torch

dtypes = {"F32": torch.float32, "BF16": torch.bfloat16, "I32": torch.int32, "U8": torch.uint8}


class SharedMemory:
    def __init__(self, fd):
        self._fd = fd
        self._map = None

    def tensor(self, place):
        """The tensor at `{at, dtype, shape}`: `at` in bytes. It is no copy."""
        dtype = dtypes[place["dtype"]]
        count = 1
        for size in place["shape"]:
            count *= size
        if count == 0:
            return torch.empty(place["shape"], dtype=dtype)
        end = place["at"] + count * dtype.itemsize
        if self._map is None or len(self._map) < end:
            # Tensors of the earlier map keep it alive.
            self._map = mmap.mmap(self._fd, os.fstat(self._fd).st_size)
        return torch.frombuffer(self._map, dtype=dtype, count=count, offset=place["at"]).view(place["shape"])
