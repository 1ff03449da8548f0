"""Events of several engine requests as one stream of batches: what the same step gave comes together.

Used by `generation.py`. One task per request takes its events; closing the stream cancels them, and with them the
requests.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from octavo_runtime.engine.messages import AddRequest
from octavo_runtime.server.interfaces import Engine, RequestEvent

Batch = list[tuple[int, RequestEvent]]


class _Gatherer:
    """Takes the events of all requests into one list."""

    def __init__(self, engine: Engine, requests: Sequence[AddRequest]) -> None:
        self._engine = engine
        self._events: Batch = []
        self._failure: BaseException | None = None
        self._changed = asyncio.Event()
        self._tasks = [asyncio.create_task(self._take(place, request)) for place, request in enumerate(requests)]
        self._num_open = len(self._tasks)
        for task in self._tasks:
            task.add_done_callback(self._ended)

    async def next(self) -> Batch:
        """What came since the last call, at least one event; empty at the end. Raises what a request raised."""
        while not self._events and self._num_open > 0 and self._failure is None:
            self._changed.clear()
            await self._changed.wait()
        if self._failure is not None:
            raise self._failure
        batch, self._events = self._events, []
        return batch

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, place: int, request: AddRequest) -> None:
        async with aclosing(self._engine.generate(request)) as events:
            async for event in events:
                self._events.append((place, event))
                self._changed.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._num_open -= 1
        if not task.cancelled() and self._failure is None:
            self._failure = task.exception()
        self._changed.set()


async def merged_events(engine: Engine, requests: Sequence[AddRequest], single: bool) -> AsyncGenerator[Batch, None]:
    """Batches of (place of the request, event), until every request had its last event.

    `single`: every request has one sequence, so one request alone needs no task to gather what a step gave.
    """
    if single and len(requests) == 1:
        async with aclosing(engine.generate(requests[0])) as events:
            async for event in events:
                yield [(0, event)]
        return
    gatherer = _Gatherer(engine, requests)
    try:
        while batch := await gatherer.next():
            yield batch
    finally:
        await gatherer.close()
