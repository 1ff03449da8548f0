"""Work on many things at once, but not on too many; the first failure ends all of it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def map_bounded(limit: int, work: Callable[[T], Awaitable[R]], items: Iterable[T]) -> list[R]:
    """The results in the items' order, at most `limit` at a time. Raises the first failure itself, not a group of it."""
    gate = asyncio.Semaphore(limit)

    async def one(item: T) -> R:
        async with gate:
            return await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except ExceptionGroup as failures:
        raise _first(failures) from None
    return [task.result() for task in tasks]


def _first(failures: ExceptionGroup[Exception]) -> Exception:
    failure = failures.exceptions[0]
    return _first(failure) if isinstance(failure, ExceptionGroup) else failure
