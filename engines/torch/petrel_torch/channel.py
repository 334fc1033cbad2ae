"""
Frames between the worker and a rank: a length of four bytes, little-endian, then an object in JSON. They go over a
socket pair that the worker made; when its other end closes, the rank ends. Numbers in bulk go through shared memory.
"""

import json
import os
import queue
import struct
import threading
import time


class Channel:
    def __init__(self, fd):
        os.set_blocking(fd, True)
        self._fd = fd
        self._frames = queue.SimpleQueue()
        self._writing = threading.Lock()
        self._ticked = 0.0
        threading.Thread(target=self._read, name="frames", daemon=True).start()

    def receive(self):
        return self._frames.get()

    def send(self, frame):
        body = json.dumps(frame, allow_nan=False).encode()
        data = memoryview(struct.pack("<I", len(body)) + body)
        with self._writing:
            while data:
                data = data[os.write(self._fd, data) :]

    def tick(self, call):
        """Says that the call advances, at most five times a second."""
        now = time.monotonic()
        if now - self._ticked < 0.2:
            return
        self._ticked = now
        self.send({"tick": call})

    def _read(self):
        # Also while a call computes: the end of the worker is the end of the rank.
        while True:
            head = self._exactly(4)
            self._frames.put(json.loads(self._exactly(struct.unpack("<I", head)[0])))

    def _exactly(self, count):
        parts = []
        while count > 0:
            try:
                part = os.read(self._fd, min(count, 1 << 20))
            except OSError:
                part = b""
            if not part:
                os._exit(0)
            parts.append(part)
            count -= len(part)
        return b"".join(parts)
