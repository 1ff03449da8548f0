"""The operator's own HTTP side, one port: /livez, /readyz, /metrics.

live: nothing in the queue is older than it may be, everything was listed lately, the event loop keeps up. ready: the cache
is filled, whether or not this replica leads. Given how to ask for these facts; knows neither kopf nor Kubernetes.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

LAG_PERIOD_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Vitals:
    """How the operator is at one moment."""

    synced: bool
    queue_oldest_seconds: float
    relist_seconds: float
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What is still life."""

    queue_oldest_seconds: float
    relist_seconds: float
    lag_seconds: float = 10.0


def problem_of(vitals: Vitals, limits: Limits) -> str:
    """Why a restart would help; empty when all is well."""
    if vitals.queue_oldest_seconds > limits.queue_oldest_seconds:
        return f"an LLMDeployment has waited for {vitals.queue_oldest_seconds:.0f} s in the queue"
    if vitals.relist_seconds > limits.relist_seconds:
        return f"nothing was listed for {vitals.relist_seconds:.0f} s"
    if vitals.lag_seconds > limits.lag_seconds:
        return f"the event loop was held for {vitals.lag_seconds:.0f} s"
    return ""


class LoopLag:
    """How late the event loop comes to what is due."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.seconds = 0.0

    async def keep_measuring(self) -> None:
        """Until cancelled."""
        while True:
            due = self._clock() + LAG_PERIOD_SECONDS
            await asyncio.sleep(LAG_PERIOD_SECONDS)
            self.seconds = max(0.0, self._clock() - due)


def make_app(
    registry: CollectorRegistry, vitals: Callable[[], Vitals], limits: Limits, refresh: Callable[[], None]
) -> web.Application:
    """The three pages. `refresh` sets the gauges that nobody else keeps, just before they are read."""

    async def live(_: web.Request) -> web.Response:
        return _answer(problem_of(vitals(), limits))

    async def ready(_: web.Request) -> web.Response:
        return _answer("" if vitals().synced else "the cache is being filled")

    async def metrics(request: web.Request) -> web.Response:
        refresh()
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        response = web.Response(body=encode(registry))
        response.headers["Content-Type"] = content_type
        return response

    app = web.Application()
    app.add_routes([web.get("/livez", live), web.get("/readyz", ready), web.get("/metrics", metrics)])
    return app


async def serve(app: web.Application, host: str, port: int) -> web.AppRunner:
    """Listen; `cleanup()` of what is returned ends it."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host or None, port).start()
    return runner


def _answer(problem: str) -> web.Response:
    return web.Response(status=503 if problem else 200, text=problem or "ok")
