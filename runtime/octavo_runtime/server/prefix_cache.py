"""POST /reset_prefix_cache: the engine forgets every cached prefix that no running request uses."""

from aiohttp import web

from octavo_runtime.server.service import SERVICE


async def reset_prefix_cache(request: web.Request) -> web.Response:
    """vLLM's form: an empty 200. Takes effect before the engine's next step; 503 while the model loads."""
    service = request.app[SERVICE]
    service.admission.limits()
    service.engine.reset_prefix_cache()
    return web.Response()
