"""The engine's pulse in shared memory, so that liveness needs no answer from a busy engine.

The engine writes, the HTTP process reads: number of steps, time of the last beat (CLOCK_MONOTONIC, the same clock in all
processes of a machine) and whether there is work. One writer; each field is a naturally aligned 8-byte word.
"""

import mmap
import os
import struct
import time

_FIELDS = struct.Struct("<QdQ")  # steps, seconds, has work


class Heartbeat:
    """A view of the shared pulse; made with `create` by the parent, opened with its descriptor by the child."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, mmap.PAGESIZE)
        self._steps = 0

    @classmethod
    def create(cls) -> "Heartbeat":
        """A fresh pulse that has never beaten; the descriptor is inherited by name only (`pass_fds`)."""
        descriptor = os.memfd_create("octavo-heartbeat")
        os.ftruncate(descriptor, mmap.PAGESIZE)
        return cls(descriptor)

    def beat(self, *, has_work: bool) -> None:
        """Called by the engine around each step and while it waits."""
        self._steps += 1
        _FIELDS.pack_into(self._memory, 0, self._steps, time.monotonic(), int(has_work))

    @property
    def steps(self) -> int:
        """Beats so far."""
        return int(_FIELDS.unpack_from(self._memory, 0)[0])

    @property
    def has_work(self) -> bool:
        """Whether the engine had requests at its last beat."""
        return bool(_FIELDS.unpack_from(self._memory, 0)[2])

    def age(self) -> float:
        """Seconds since the last beat; 0 before the first (start-up has its own limit)."""
        steps, seconds, _ = _FIELDS.unpack_from(self._memory, 0)
        return time.monotonic() - seconds if steps else 0.0

    def close(self) -> None:
        """Give the mapping and the descriptor back."""
        self._memory.close()
        os.close(self.descriptor)
