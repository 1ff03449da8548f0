"""POST, GET and DELETE /drain: whoever holds an admin key takes this server out of routing, and back.

Without an admin key the path does not exist. Nothing is refused while draining: readiness alone is 503.
"""

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from octavo_runtime.errors import NotFoundError, UnauthorizedError
from octavo_runtime.server.keys import bearer
from octavo_runtime.server.reply import json_response
from octavo_runtime.server.service import SERVICE


def admin_call(handler: Handler) -> Handler:
    """Mark a handler that only an admin key opens."""

    async def guarded(request: web.Request) -> web.StreamResponse:
        keys = request.app[SERVICE].keys.admin
        if keys is None:
            raise NotFoundError("There is nothing under this path.")
        if not keys.opens(bearer(request.headers.get(hdrs.AUTHORIZATION, ""))):
            raise UnauthorizedError("An admin key is needed; send the header Authorization: Bearer KEY.")
        return await handler(request)

    return guarded


async def ask_drain(request: web.Request) -> web.Response:
    request.app[SERVICE].drain.ask()
    return _answer(request)


async def show_drain(request: web.Request) -> web.Response:
    return _answer(request)


async def cancel_drain(request: web.Request) -> web.Response:
    request.app[SERVICE].drain.cancel()
    return _answer(request)


def _answer(request: web.Request) -> web.Response:
    service = request.app[SERVICE]
    return json_response(
        {
            "draining": service.drain.draining,
            "in_flight": service.admission.num_calls,
            "waiting": service.engine.stats.num_waiting,
        }
    )
