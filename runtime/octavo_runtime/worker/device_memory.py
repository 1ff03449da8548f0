"""Waiting until a device's memory is free: a pod that is still ending holds it, and crashing would only come back to that.

Given a function that reads the device's free and total memory, so that it knows no device.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from octavo_runtime.byte_size import size
from octavo_runtime.errors import StartCause, StartError

POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Bytes."""

    free: int
    total: int


def wait_for_memory(
    read: Callable[[], DeviceMemory],
    needed: int,
    deadline: float | None,
    on_wait: Callable[[DeviceMemory], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> DeviceMemory:
    """The memory, once `needed` bytes of it are free. `on_wait` is told of each look that found less.

    Raises StartError: OUT_OF_MEMORY when the device is too small, DEVICE_MEMORY_BUSY when `deadline` (on `clock`) passes.
    """
    while True:
        memory = read()
        if memory.free >= needed:
            return memory
        if memory.total < needed:
            message = (
                f"The model needs {size(needed)}, the device has {size(memory.total)}; use more or larger devices."
            )
            raise StartError(StartCause.OUT_OF_MEMORY, message)
        if deadline is not None and clock() + POLL_SECONDS > deadline:
            message = (
                f"{size(needed)} of device memory are needed, but other processes leave only {size(memory.free)} of "
                f"{size(memory.total)} free; end them, or wait until they have ended."
            )
            raise StartError(StartCause.DEVICE_MEMORY_BUSY, message)
        on_wait(memory)
        sleep(POLL_SECONDS)
