"""GET /health and its three probes, /ping, /load, /version, /metrics. None of them asks the engine anything.

live: the engine shows life, has nothing to do, or still loads. startup: the model has been ready once.
ready: it may be sent requests.
"""

from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from octavo_runtime.server.reply import json_response
from octavo_runtime.server.service import SERVICE, Service

REGISTRY = web.AppKey("registry", CollectorRegistry)


async def health(request: web.Request) -> web.Response:
    """vLLM's form: an empty 200, or 503 when the engine is dead, hangs or is not ready."""
    service = request.app[SERVICE]
    serves = service.ready is not None and _problem(service) is None
    return web.Response(status=200 if serves else 503)


async def live(request: web.Request) -> web.Response:
    return _probe(_problem(request.app[SERVICE]))


async def startup(request: web.Request) -> web.Response:
    service = request.app[SERVICE]
    return _probe(_problem(service) or _loading(service))


async def ready(request: web.Request) -> web.Response:
    service = request.app[SERVICE]
    draining = {"status": "draining"} if service.drain.draining else None
    return _probe(_problem(service) or _loading(service) or draining)


async def load(request: web.Request) -> web.Response:
    """Calls that the engine works for."""
    return json_response({"server_load": request.app[SERVICE].admission.num_calls})


async def version(request: web.Request) -> web.Response:
    return json_response({"version": request.app[SERVICE].config.version})


async def metrics(request: web.Request) -> web.Response:
    """Prometheus text, or OpenMetrics when asked for."""
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    response = web.Response(body=encode(request.app[REGISTRY]))
    response.headers["Content-Type"] = content_type
    return response


def _problem(service: Service) -> dict[str, Any] | None:
    """Why the engine will not recover by itself."""
    dead = service.engine.dead
    if dead is not None:
        return {"status": "dead", "cause": str(dead.cause)}  # dead.message is for the log: it may name files
    limit, age = service.config.liveness_timeout, service.engine.heartbeat_age()
    if limit > 0 and service.ready is not None and service.engine.has_work and age > limit:
        return {"status": "hung", "message": f"The engine has not shown life for {age:.0f} seconds."}
    return None


def _loading(service: Service) -> dict[str, Any] | None:
    if service.ready is not None:
        return None
    start = service.start
    return {
        "status": "loading",
        "phase": start.phase,
        "done_bytes": start.done_bytes,
        "total_bytes": start.total_bytes,
    }


def _probe(problem: dict[str, Any] | None) -> web.Response:
    response = json_response(problem or {"status": "ok"})
    if problem is not None:
        response.set_status(503)
    return response
