"""A time limit for work that may hang: it runs in a forked process, which is killed when the time is over."""

import os
import select
import signal


def is_true_within(seconds, function):
    """Whether function() is true. False when it takes too long, raises an error or ends its process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer = b"0"
        try:
            answer = b"1" if function() else b"0"
        finally:
            os.write(writer, answer)
            os._exit(0)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], seconds)
        return bool(ready) and os.read(reader, 1) == b"1"
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
