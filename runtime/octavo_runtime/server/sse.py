"""Server-sent events: one engine batch, one write to the socket. Errors after the first event become an error event.

The headers wait a moment for the first batch, so that a request which is refused at once gets a real HTTP status. Then
they go out with a comment, and more comments follow, so that no proxy takes a queued request for a dead one.
"""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing, suppress
from typing import Protocol

from aiohttp import web

from octavo_runtime.server.error_reply import error_body
from octavo_runtime.server.generation import Delta, Generation

DONE = b"data: [DONE]\n\n"
FIRST_SIGN_SECONDS = 2.0
NEXT_SIGN_SECONDS = 15.0
_COMMENT = b": waiting for the first token\n\n"


class ChunkWriter(Protocol):
    """Deltas -> events of one API."""

    def events(self, deltas: Iterable[Delta]) -> bytes:
        """Whole events, or nothing when the deltas show nothing."""

    def last_events(self) -> bytes:
        """What follows the last delta: usage, when asked for."""


async def stream_reply(request: web.Request, generation: Generation, writer: ChunkWriter) -> web.StreamResponse:
    """Send a generation as events. A client that goes away ends it, and the engine's work with it."""
    response = web.StreamResponse(
        headers={
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-cache",
            "X-Accel-Buffering": "no",
        }
    )
    waiting = _Waiting(request, response)
    try:
        async with aclosing(generation.deltas()) as batches:
            async for deltas in batches:
                data = writer.events(deltas)
                if data:
                    if waiting.open:
                        await waiting.end()
                    await response.write(data)
        tail = writer.last_events() + DONE
    except ConnectionResetError:
        return response
    except Exception as error:  # the client must see the end of its stream, whatever it was
        if not response.prepared:
            raise
        tail = b"data: " + error_body(error)[1] + b"\n\n" + DONE
    finally:
        waiting.cancel()
    with suppress(ConnectionResetError):
        await waiting.end()
        await response.write(tail)
        await response.write_eof()
    return response


class _Waiting:
    """The time before the first event: comments, after a while."""

    def __init__(self, request: web.Request, response: web.StreamResponse) -> None:
        self.open = True
        self._request = request
        self._response = response
        self._writing = asyncio.Lock()
        self._task = asyncio.create_task(self._comment())

    def cancel(self) -> None:
        self._task.cancel()

    async def end(self) -> None:
        """The first event follows: no more comments, headers are there."""
        async with self._writing:
            self.open = False
            self._task.cancel()
            if not self._response.prepared:
                await self._response.prepare(self._request)

    async def _comment(self) -> None:
        pause = FIRST_SIGN_SECONDS
        with suppress(ConnectionResetError):
            while True:
                await asyncio.sleep(pause)
                pause = NEXT_SIGN_SECONDS
                async with self._writing:
                    if not self.open:
                        return
                    if not self._response.prepared:
                        await self._response.prepare(self._request)
                    await self._response.write(_COMMENT)
