"""Work beside the loop that never holds the process."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from octavo_runtime.daemon_thread import in_daemon_thread


async def test_results_and_errors_come_back() -> None:
    def add(one: int, *, two: int) -> int:
        assert threading.current_thread().daemon
        return one + two

    def fail() -> None:
        raise ValueError("broken")

    assert await in_daemon_thread(add, 1, two=2) == 3
    with pytest.raises(ValueError, match="broken"):
        await in_daemon_thread(fail)


async def test_nobody_waits_for_what_was_given_up() -> None:
    done = threading.Event()
    task = asyncio.create_task(in_daemon_thread(done.wait, 30))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    done.set()
    await asyncio.sleep(0.05)


def test_a_process_ends_though_its_thread_does_not() -> None:
    code = (
        "import asyncio, time\n"
        "from octavo_runtime.daemon_thread import in_daemon_thread\n"
        "async def main():\n"
        "    task = asyncio.create_task(in_daemon_thread(time.sleep, 60))\n"
        "    await asyncio.sleep(0.05)\n"
        "    task.cancel()\n"
        "asyncio.run(main())\n"
    )
    started = time.monotonic()
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
    assert time.monotonic() - started < 20
