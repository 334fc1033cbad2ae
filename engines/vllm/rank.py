"""
The program of a vLLM sampler. `rank.py <settings in JSON>`; descriptor 3 is the channel to the worker, descriptor 4 the
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
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../torch")]

from petrel_torch.device import alone  # noqa: E402
from petrel_torch.serve import serve  # noqa: E402


def opened(group, shared, args):
    from petrel_vllm.sampling import Sampling

    return Sampling(group, shared, args)


# vLLM may start processes of its own, which import this file.
if __name__ == "__main__":
    serve(alone(json.loads(sys.argv[1])), opened)
