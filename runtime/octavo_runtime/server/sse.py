"""Server-sent events: one engine batch, one write to the socket. Errors after the first event become an error event.

The headers wait for the first batch, so that a request which fails before it gets a real HTTP status.
"""

from collections.abc import Iterable
from contextlib import aclosing
from typing import Protocol

from aiohttp import web

from octavo_runtime.server.error_reply import error_body
from octavo_runtime.server.generation import Delta, Generation

DONE = b"data: [DONE]\n\n"


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
    try:
        async with aclosing(generation.deltas()) as batches:
            async for deltas in batches:
                data = writer.events(deltas)
                if data:
                    if not response.prepared:
                        await response.prepare(request)
                    await response.write(data)
        tail = writer.last_events() + DONE
    except ConnectionResetError:
        return response
    except Exception as error:  # the client must see the end of its stream, whatever it was
        if not response.prepared:
            raise
        tail = b"data: " + error_body(error)[1] + b"\n\n" + DONE
    if not response.prepared:
        await response.prepare(request)
    try:
        await response.write(tail)
        await response.write_eof()
    except ConnectionResetError:
        return response
    return response
