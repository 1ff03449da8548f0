"""`in_daemon_thread`: blocking work beside the event loop that never keeps the process from ending.

The loop's own threads (`asyncio.to_thread`) are waited for at exit, however long they read; these are not.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_daemon_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` returns or raises. When the waiting task is cancelled, the work goes on and its result is dropped."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(outcome: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: None if future.done() else outcome())

    def run() -> None:
        try:
            result = work(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001  handed to the waiting task
            failure = error
            settle(lambda: future.set_exception(failure))
        else:
            settle(lambda: future.set_result(result))

    threading.Thread(target=run, name=getattr(work, "__name__", "work"), daemon=True).start()
    return await future
