"""The loop of a rank: one call after the other, each answered by one frame."""

import os
import sys
import traceback

import torch

from .channel import Channel
from .device import facts
from .errors import InvalidInput
from .shared import SharedMemory

# Raised with every change of a call's form. The worker compares it with its own.
PROTOCOL = 8


def serve(group, make_role):
    """`make_role(group, shared, args)`: what the call `open` opens. Its `calls` are names of its methods."""
    channel = Channel(3)
    calls = {}

    def opened(args):
        role = make_role(group, SharedMemory(4), args)
        calls.update({name: getattr(role, name) for name in role.calls})
        return role.facts()

    calls["open"] = opened
    channel.send({"hello": {"protocol": PROTOCOL, "rank": group.rank, **facts(group)}})
    while True:
        frame = channel.receive()
        try:
            call = calls.get(frame["call"])
            if call is None:
                raise InvalidInput(f"there is no call {frame['call']}")
            group.tick = lambda id=frame["id"]: channel.tick(id)
            channel.send({"id": frame["id"], "ok": call(frame["args"]) or {}})
        except InvalidInput as error:
            channel.send({"id": frame["id"], "error": {"kind": error.kind, "message": str(error)}})
        except torch.OutOfMemoryError as error:
            channel.send({"id": frame["id"], "error": {"kind": "out_of_memory", "message": str(error)}})
        except Exception as error:  # the worker ends the group
            traceback.print_exc()
            message = f"{type(error).__name__}: {error}"
            channel.send({"id": frame["id"], "error": {"kind": "internal", "message": message}})
            sys.stderr.flush()
        if frame["call"] == "close":
            os._exit(0)
