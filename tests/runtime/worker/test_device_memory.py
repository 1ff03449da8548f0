"""Waiting for memory that another process still holds."""

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.worker.device_memory import DeviceMemory, wait_for_memory

GIB = 1 << 30


class Device:
    """Frees a gibibyte a second."""

    def __init__(self, free: int, total: int) -> None:
        self.memory = DeviceMemory(free, total)
        self.now = 0.0
        self.seen: list[DeviceMemory] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.memory = DeviceMemory(self.memory.free + GIB, self.memory.total)

    def wait(self, needed: int, deadline: float | None = None) -> DeviceMemory:
        return wait_for_memory(
            lambda: self.memory, needed, deadline, self.seen.append, clock=lambda: self.now, sleep=self.sleep
        )


def test_free_memory_is_taken_at_once() -> None:
    device = Device(10 * GIB, 80 * GIB)
    assert device.wait(9 * GIB).free == 10 * GIB
    assert device.seen == []


def test_busy_memory_is_waited_for_and_told() -> None:
    device = Device(GIB, 80 * GIB)
    assert device.wait(4 * GIB).free == 4 * GIB
    assert [memory.free for memory in device.seen] == [GIB, 2 * GIB, 3 * GIB]


def test_memory_that_stays_busy_ends_with_the_startup_budget() -> None:
    device = Device(GIB, 80 * GIB)
    with pytest.raises(StartError, match=r"40\.00 GiB of device memory.* leave only 5\.00 GiB of 80\.00 GiB") as caught:
        device.wait(40 * GIB, deadline=4.5)
    assert caught.value.cause is StartCause.DEVICE_MEMORY_BUSY


def test_a_device_that_is_too_small_is_not_waited_for() -> None:
    with pytest.raises(StartError) as caught:
        Device(0, 24 * GIB).wait(40 * GIB)
    assert caught.value.cause is StartCause.OUT_OF_MEMORY
