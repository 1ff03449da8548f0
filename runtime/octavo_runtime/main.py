"""`serve`: the HTTP process from settings to exit code; the only place that joins HTTP, text and engine.

Listens at once, so that probes and /status see the model come (`startup.py`); is ready with the engine; ends by SIGTERM
(drain, exit 0) or with the engine (exit 1, cause in the termination log). Never imports torch.
"""

import asyncio
import contextlib
import logging
import signal
import sys
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from octavo_runtime.banner import Banner
from octavo_runtime.engine.async_llm_engine import AsyncLLMEngine
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.engine.messages import EngineFailed
from octavo_runtime.errors import EngineDeadError, StartCause
from octavo_runtime.key_files import KeyWatch
from octavo_runtime.listener import listen, make_ssl_context, process_registry, server_config
from octavo_runtime.metrics import ServerMetrics
from octavo_runtime.process_state import cause_of, configure_logging, write_termination_log
from octavo_runtime.progress import follow_download
from octavo_runtime.pulse import watch_pulse
from octavo_runtime.server.app import make_app, make_runner
from octavo_runtime.server.service import SERVICE, Service
from octavo_runtime.settings import Settings
from octavo_runtime.start_state import StartState
from octavo_runtime.startup import Startup

logger = logging.getLogger(__name__)

LOAD_LOG_SECONDS = 10.0

ERROR_FLUSH_SECONDS = 1.0
"""After the engine's death: time for open streams to send their error."""

STACKS_SECONDS = 1.0
"""Time for a hung engine to write its stacks to the log."""


def serve(settings: Settings) -> int:
    """Blocks until the server ends; the exit code."""
    configure_logging(settings.log.log_level, as_json=settings.log.as_json)
    try:
        return asyncio.run(_Replica(settings).run())
    except Exception as error:
        cause, message = cause_of(error, "The server")
        if cause is StartCause.INTERNAL:
            logger.exception("the server failed")
        _leave(settings, cause, message)
    return 1


def _leave(settings: Settings, cause: StartCause, sentence: str) -> None:
    """The last word: for Kubernetes in the termination log, and on standard error, as a log line where all are JSON."""
    write_termination_log(settings.log.termination_log, cause, sentence)
    if settings.log.as_json:
        logger.error("%s", sentence)
    else:
        sys.stderr.write(f"octavo: {sentence}\n")


@dataclass(frozen=True, slots=True)
class _Parts:
    """What there is from the first moment on."""

    engine: AsyncLLMEngine
    startup: Startup
    service: Service
    site: web.TCPSite
    key_watch: KeyWatch


class _Replica:
    """One serving process tree."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._banner = Banner(settings)
        self._stop = asyncio.Event()

    async def run(self) -> int:
        self._settings.check_supported()
        for warning in self._settings.warnings():
            logger.warning("%s", warning)
        self._catch_signals()
        async with contextlib.AsyncExitStack() as stack:
            return await self._live(await self._open(stack))

    async def _open(self, stack: contextlib.AsyncExitStack) -> _Parts:
        """Everything but the model; from here on the port answers."""
        settings = self._settings
        ssl_context = make_ssl_context(settings)
        key_watch = KeyWatch(settings.server)
        config, registry = server_config(settings), process_registry()
        metrics = ServerMetrics(registry, config.model_name)
        heartbeat = Heartbeat.create()
        stack.callback(heartbeat.close)
        engine = AsyncLLMEngine(heartbeat)
        engine.on_step.append(metrics.step)
        stack.callback(engine.close)
        startup = Startup(settings, engine, StartState(config.model_name))
        stack.callback(startup.kill)
        app = make_app(engine, config, metrics, registry, key_watch.keys, startup.state)
        runner = make_runner(app, config)
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        site = await listen(runner, settings, ssl_context)
        self._banner.listening(runner.addresses[0][1], tls=ssl_context is not None)
        return _Parts(engine, startup, app[SERVICE], site, key_watch)

    async def _live(self, parts: _Parts) -> int:
        """From listening to the end."""
        stopping = asyncio.create_task(self._stop.wait())
        dying = asyncio.create_task(parts.engine.wait_dead())
        starting = asyncio.create_task(self._become_ready(parts))
        limit = self._settings.server.engine_hang_timeout
        helpers = [
            asyncio.create_task(work)
            for work in (
                watch_pulse(parts.engine, limit),
                log_load(parts.engine),
                parts.key_watch.run(),
                follow_download(parts.startup.state, self._banner.progress),
            )
        ]
        try:
            await asyncio.wait((stopping, dying, starting), return_when=asyncio.FIRST_COMPLETED)
            if not (stopping.done() or dying.done()):
                starting.result()  # raises what kept it from starting
                await asyncio.wait((stopping, dying), return_when=asyncio.FIRST_COMPLETED)
            if not dying.done():
                await self._drain(parts, dying)
            if dying.done():
                return await self._end_with_engine(parts, dying.result())
            await parts.startup.stop()
            return 0
        finally:
            await _cancel(stopping, dying, starting, *helpers)

    async def _become_ready(self, parts: _Parts) -> None:
        service = parts.service
        with contextlib.suppress(EngineDeadError):  # _live sees that too, and ends with its cause
            ready = await parts.startup.run(service.load, self._banner.progress)
            service.metrics.engine_ready(ready, self._settings.cache.enable_prefix_caching)
            self._banner.ready(ready, service.config.model_name, with_key=service.keys.api is not None)

    async def _drain(self, parts: _Parts, dying: "asyncio.Task[EngineFailed]") -> None:
        """SIGTERM: no new connections, running streams finish up to the deadline. A second signal, or the engine's death,
        ends it."""
        self._stop.clear()
        timeout = self._settings.server.shutdown_timeout
        logger.info("stopping: %d requests may finish within %.0f s", parts.engine.num_requests, timeout)
        parts.service.drain.begin()
        await parts.site.stop()
        draining = asyncio.create_task(parts.service.drain.run(timeout))
        again = asyncio.create_task(self._stop.wait())
        await asyncio.wait((draining, again, dying), return_when=asyncio.FIRST_COMPLETED)
        await _cancel(draining, again)

    async def _end_with_engine(self, parts: _Parts, failure: EngineFailed) -> int:
        """Every open request has got its error event; leave the cause and go."""
        cause, message = parts.startup.why_dead(failure)
        if cause is StartCause.ENGINE_HUNG:
            parts.startup.dump_stacks()
            await asyncio.sleep(STACKS_SECONDS)
        _leave(self._settings, cause, message)
        await parts.service.drain.run(ERROR_FLUSH_SECONDS)
        return 1

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)


async def log_load(engine: AsyncLLMEngine) -> None:
    """One line every `LOAD_LOG_SECONDS` in which tokens were made: what runs, what waits, how fast."""
    before = engine.stats.generation_tokens
    while True:
        await asyncio.sleep(LOAD_LOG_SECONDS)
        stats = engine.stats
        if stats.generation_tokens != before:
            rate = (stats.generation_tokens - before) / LOAD_LOG_SECONDS
            logger.info(
                "%d running, %d waiting, %.1f tokens/s, cache %.0f %% used",
                stats.num_running, stats.num_waiting, rate, 100 * stats.kv_cache_usage,
            )  # fmt: skip
            before = stats.generation_tokens


async def _cancel(*tasks: "asyncio.Task[Any]") -> None:
    """End the tasks and wait until they have."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
