"""
The program of one rank. `rank.py <settings in JSON>`; descriptor 3 is the channel to the worker, descriptor 4 the
shared memory. Standard output and error carry logs only.
"""

import ctypes
import faulthandler
import json
import os
import signal
import sys

faulthandler.enable()
# The kernel ends this process with the thread that started it, whatever ends that.
ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from petrel_torch.device import join  # noqa: E402
from petrel_torch.serve import serve  # noqa: E402


def opened(group, shared, args):
    # Imported here: a rank of a sampler needs other parts than one that trains.
    if args["samples"]:
        from petrel_torch.decoding import Decoding as Role
    else:
        from petrel_torch.training import Training as Role
    return Role(group, shared, args)


serve(join(json.loads(sys.argv[1])), opened)
