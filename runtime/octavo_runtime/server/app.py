"""`make_app`: the route table and the order of the middlewares; `make_runner`: how aiohttp serves it.

Given the engine and the configuration, and later the text layer (`Service.load`); knows no settings, no sockets, no
signals (main.py).
"""

import time

from aiohttp import web
from prometheus_client import CollectorRegistry

from octavo_runtime.metrics import ServerMetrics
from octavo_runtime.server import admin, chat, completions, health, middleware, model_list, prefix_cache, status, tokens
from octavo_runtime.server.admission import Admission
from octavo_runtime.server.config import ServerConfig
from octavo_runtime.server.connections import Connections
from octavo_runtime.server.drain import Drain
from octavo_runtime.server.interfaces import Engine
from octavo_runtime.server.keys import Keys
from octavo_runtime.server.service import SERVICE, Service
from octavo_runtime.start_state import StartState

_FLUSH_SECONDS = 2.0  # after the drain: for handlers that still write to a slow client


def make_app(
    engine: Engine,
    config: ServerConfig,
    metrics: ServerMetrics,
    registry: CollectorRegistry,
    keys: Keys,
    start: StartState,
) -> web.Application:
    """The application; `app[SERVICE]` is how its maker goes on: `load` brings the model, `drain` ends it in order.

    `metrics` must be told of the engine's steps by the caller.
    """
    admission, connections = Admission(engine, config, metrics), Connections()
    service = Service(
        engine=engine,
        config=config,
        metrics=metrics,
        admission=admission,
        connections=connections,
        drain=Drain(engine, admission, connections),
        keys=keys,
        start=start,
        started=int(time.time()),
    )
    app = web.Application(middlewares=middleware.middlewares(service), client_max_size=config.max_body_bytes)
    app[SERVICE] = service
    app[health.REGISTRY] = registry
    app.on_response_prepare.append(middleware.response_headers)
    app.on_cleanup.append(_close)
    for prefix in {"", config.root_path.rstrip("/")}:
        app.add_routes(_routes(prefix))
    return app


def _routes(prefix: str) -> list[web.RouteDef]:
    """Every path of the server."""
    return [
        web.post(f"{prefix}/v1/completions", middleware.engine_call(completions.completions)),
        web.post(f"{prefix}/v1/chat/completions", middleware.engine_call(chat.chat_completions)),
        web.get(f"{prefix}/v1/models", model_list.list_models),
        web.get(f"{prefix}/v1/models/{{id:.+}}", model_list.show_model),
        web.post(f"{prefix}/tokenize", tokens.tokenize),
        web.post(f"{prefix}/detokenize", tokens.detokenize),
        web.post(f"{prefix}/reset_prefix_cache", prefix_cache.reset_prefix_cache),
        web.get(f"{prefix}/status", status.status),
        web.post(f"{prefix}/drain", admin.admin_call(admin.ask_drain)),
        web.get(f"{prefix}/drain", admin.admin_call(admin.show_drain)),
        web.delete(f"{prefix}/drain", admin.admin_call(admin.cancel_drain)),
        web.get(f"{prefix}/version", health.version),
        web.get(f"{prefix}/load", health.load),
        web.get(f"{prefix}/health", health.health),
        web.get(f"{prefix}/health/live", health.live),
        web.get(f"{prefix}/health/ready", health.ready),
        web.get(f"{prefix}/health/startup", health.startup),
        web.get(f"{prefix}/ping", health.health),
        web.post(f"{prefix}/ping", health.health),
        web.get(f"{prefix}/metrics", health.metrics),
    ]


def make_runner(app: web.Application, config: ServerConfig) -> web.AppRunner:
    """A client that goes away cancels its handler, which aborts its work in the engine."""
    return web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=None,  # middleware.py writes it
        keepalive_timeout=config.keep_alive,
        handle_signals=False,
        shutdown_timeout=_FLUSH_SECONDS,
    )


async def _close(app: web.Application) -> None:
    app[SERVICE].close()
