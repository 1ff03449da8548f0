"""Events of several engine requests as one stream of batches: what the same step gave comes together.

Used by `generation.py`. One task per request takes its events; closing the stream cancels them, which aborts the requests.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from octavo_runtime.engine.messages import AddRequest
from octavo_runtime.server.interfaces import Engine, RequestEvent

Batch = list[tuple[int, RequestEvent]]


async def merged_events(engine: Engine, requests: Sequence[AddRequest], single: bool) -> AsyncGenerator[Batch, None]:
    """Batches of (place of the request, event), until every request had its last event.

    `single`: every request has one sequence, so one request alone needs no task to gather what a step gave.
    """
    if single and len(requests) == 1:
        async with aclosing(engine.generate(requests[0])) as events:
            async for event in events:
                yield [(0, event)]
        return
    gathered: Batch = []
    failures: list[BaseException] = []
    changed = asyncio.Event()

    async def take(place: int, request: AddRequest) -> None:
        async with aclosing(engine.generate(request)) as events:
            async for event in events:
                gathered.append((place, event))
                changed.set()

    def ended(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            failures.append(error)
        open_tasks.discard(task)
        changed.set()

    tasks = [asyncio.create_task(take(place, request)) for place, request in enumerate(requests)]
    open_tasks = set(tasks)
    for task in tasks:
        task.add_done_callback(ended)
    try:
        while open_tasks or gathered:
            if not gathered:
                await changed.wait()
            changed.clear()
            if gathered:
                batch = gathered[:]
                gathered.clear()
                yield batch
            if failures:
                raise failures[0]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
