"""`serve`: the HTTP process from settings to exit code; the only place that joins HTTP, text and engine.

Resolves the model, starts the engine process, listens (probes see the weights load), becomes ready with the engine, and
ends by SIGTERM (drain, exit 0) or with the engine (exit 1, cause in the termination log). Never imports torch.
"""

import asyncio
import contextlib
import logging
import signal
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from octavo_runtime.banner import Banner
from octavo_runtime.engine.async_llm_engine import AsyncLLMEngine
from octavo_runtime.engine.messages import EngineFailed
from octavo_runtime.errors import EngineDeadError, StartCause, StartError
from octavo_runtime.hub import ModelSource, resolve_model
from octavo_runtime.launcher import EngineProcess
from octavo_runtime.metrics import ServerMetrics
from octavo_runtime.process_state import configure_logging, write_termination_log
from octavo_runtime.server.app import DRAIN, make_app, make_runner
from octavo_runtime.server.config import ServerConfig
from octavo_runtime.server.interfaces import SamplingDefaults, TextLayer
from octavo_runtime.settings import Settings, engine_environment
from octavo_runtime.text.chat_template import ChatTemplate
from octavo_runtime.text.generation_defaults import generation_defaults
from octavo_runtime.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

LOAD_LOG_SECONDS = 10.0

ERROR_FLUSH_SECONDS = 1.0
"""After the engine's death: time for open streams to send their error."""


def serve(settings: Settings) -> int:
    """Blocks until the server ends; the exit code."""
    configure_logging(settings.log.log_level, as_json=settings.log.as_json)
    try:
        return asyncio.run(_Replica(settings).run())
    except StartError as error:
        write_termination_log(settings.log.termination_log, error.cause, str(error))
        tell(settings, str(error))
        return 1


def tell(settings: Settings, sentence: str) -> None:
    """The last word on standard error: plain for a person, a log line where every line is JSON."""
    if settings.log.as_json:
        logger.error("%s", sentence)
    else:
        sys.stderr.write(f"octavo: {sentence}\n")


class _Replica:
    """One serving process tree."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._banner = Banner(settings)
        self._stop = asyncio.Event()

    async def run(self) -> int:
        settings = self._settings
        model = settings.model
        source = resolve_model(model.model, model.revision, model.download_dir)
        ssl_context = make_ssl_context(settings)
        api_keys = settings.api_keys()
        self._catch_signals()
        process = EngineProcess.start(settings.with_model(source.path).to_json(), engine_environment(settings))
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(process.kill)
            engine = await AsyncLLMEngine.connect(process.channel, process.heartbeat)
            stack.callback(engine.close)
            text = await asyncio.to_thread(load_text, settings, source)
            config = server_config(settings, source, api_keys)
            registry = process_registry()
            metrics = ServerMetrics(registry, config.model_name)
            engine.on_step.append(metrics.step)
            app = make_app(engine, text, config, metrics, registry)
            runner = make_runner(app, config)
            stack.push_async_callback(runner.cleanup)
            await runner.setup()
            await self._listen(runner, ssl_context)
            return await self._live(_Parts(engine, process, app, metrics, config))

    async def _live(self, parts: "_Parts") -> int:
        """From listening to the end."""
        stopping = asyncio.create_task(self._stop.wait())
        dying = asyncio.create_task(parts.engine.wait_dead())
        helpers = [
            asyncio.create_task(work)
            for work in (self._become_ready(parts), self._watch_pulse(parts), log_load(parts.engine))
        ]
        try:
            await asyncio.wait((stopping, dying), return_when=asyncio.FIRST_COMPLETED)
            if not dying.done():
                await self._drain(parts, dying)
            if dying.done():
                return await self._end_with_engine(parts, dying.result())
            parts.engine.shutdown()
            await parts.process.stop()
            return 0
        finally:
            await _cancel(stopping, dying, *helpers)

    async def _become_ready(self, parts: "_Parts") -> None:
        with contextlib.suppress(EngineDeadError):
            ready = await parts.engine.wait_ready(self._banner.progress)
            parts.metrics.engine_ready(ready, self._settings.cache.enable_prefix_caching)
            self._banner.ready(ready, parts.config.model_name, with_key=bool(parts.config.api_keys))

    async def _watch_pulse(self, parts: "_Parts") -> None:
        """Ends a hung engine: it has work and does not beat. Its stacks go to the log."""
        limit = self._settings.server.engine_hang_timeout
        while True:
            await asyncio.sleep(1.0)
            heartbeat = parts.process.heartbeat
            if heartbeat.has_work and heartbeat.age() > limit:
                parts.process.dump_stacks()
                await asyncio.sleep(1.0)
                message = (
                    f"The engine showed no life for {limit:.0f} s (--engine-hang-timeout); its stacks are in the log."
                )
                parts.engine.fail(EngineFailed(cause=StartCause.ENGINE_HUNG.value, message=message))
                return

    async def _drain(self, parts: "_Parts", dying: "asyncio.Task[EngineFailed]") -> None:
        """SIGTERM: nothing new, running streams finish up to the deadline. A second signal, or the engine's death, ends it."""
        self._stop.clear()
        timeout = self._settings.server.shutdown_timeout
        logger.info("stopping: %d requests may finish within %.0f s", parts.engine.num_requests, timeout)
        draining = asyncio.create_task(parts.app[DRAIN].run(timeout))
        again = asyncio.create_task(self._stop.wait())
        await asyncio.wait((draining, again, dying), return_when=asyncio.FIRST_COMPLETED)
        await _cancel(draining, again)

    async def _end_with_engine(self, parts: "_Parts", failure: EngineFailed) -> int:
        """Every open request has got its error event; leave the cause and go."""
        cause, message = StartCause(failure.cause), failure.message
        killed_by = parts.process.ended_by()
        if killed_by is not None and cause is StartCause.ENGINE_DIED:
            message = f"The engine process was killed by {killed_by}; if memory ran out, lower --kv-cache-memory-bytes."
        write_termination_log(self._settings.log.termination_log, cause, message)
        tell(self._settings, message)
        parts.app[DRAIN].begin()
        await parts.app[DRAIN].run(ERROR_FLUSH_SECONDS)
        return 1

    async def _listen(self, runner: web.AppRunner, ssl_context: ssl.SSLContext | None) -> None:
        server = self._settings.server
        site = web.TCPSite(runner, server.host, server.port, ssl_context=ssl_context, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            message = (
                f"--host {server.host} --port {server.port} cannot be listened on ({error.strerror}); "
                "choose another host or port."
            )
            raise StartError(StartCause.ADDRESS_IN_USE, message) from error
        port = runner.addresses[0][1]
        self._banner.listening(port, tls=ssl_context is not None)

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


@dataclass(frozen=True, slots=True)
class _Parts:
    """What runs after the start."""

    engine: AsyncLLMEngine
    process: EngineProcess
    app: web.Application
    metrics: ServerMetrics
    config: ServerConfig


def load_text(settings: Settings, source: ModelSource) -> TextLayer:
    """Tokenizer, chat template and sampling defaults of the model."""
    model = settings.model
    tokenizer = Tokenizer.load(source, settings.log.cache_dir.expanduser(), model.tokenizer)
    template = ChatTemplate.load(source, tokenizer, model.chat_template)
    defaults = generation_defaults(source, tokenizer.eos_token_id, model.generation_config)
    if defaults.sampling:
        logger.info(
            "sampling defaults of the model: %s (--generation-config vllm leaves them out)", dict(defaults.sampling)
        )
    return TextLayer(
        tokenizer=tokenizer,
        chat_template=template if template.exists else None,
        eos_token_ids=defaults.eos_token_ids,
        defaults=SamplingDefaults(**defaults.sampling),
    )


def server_config(settings: Settings, source: ModelSource, api_keys: tuple[str, ...]) -> ServerConfig:
    """The server's part of the settings."""
    server = settings.server
    return ServerConfig(
        served_model_names=settings.served_names or (source.name,),
        model_root=str(source.path),
        api_keys=api_keys,
        allowed_origins=server.allowed_origins,
        allowed_methods=server.allowed_methods,
        allowed_headers=server.allowed_headers,
        allow_credentials=server.allow_credentials,
        root_path=server.root_path,
        max_body_bytes=server.max_body_bytes,
        max_num_queued_reqs=server.max_num_queued_reqs,
        max_num_queued_tokens=server.max_num_queued_tokens,
        max_logprobs=server.max_logprobs,
        stream_interval=server.stream_interval,
        enable_request_id_headers=server.enable_request_id_headers,
        enable_prompt_tokens_details=server.enable_prompt_tokens_details,
        access_log=not settings.log.disable_access_log,
        liveness_timeout=server.engine_hang_timeout,
        keep_alive=server.keep_alive,
    )


def make_ssl_context(settings: Settings) -> ssl.SSLContext | None:
    """From the TLS files; None without a certificate. Raises StartError when they cannot be used."""
    server = settings.server
    if server.ssl_certfile is None:
        if server.ssl_keyfile is not None:
            raise StartError(StartCause.INVALID_SETTINGS, "--ssl-keyfile needs --ssl-certfile beside it.")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(server.ssl_certfile, server.ssl_keyfile)
        if server.ssl_ca_certs is not None:
            context.load_verify_locations(server.ssl_ca_certs)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        files: list[Path | None] = [server.ssl_certfile, server.ssl_keyfile, server.ssl_ca_certs]
        named = ", ".join(str(file) for file in files if file)
        raise StartError(StartCause.INVALID_SETTINGS, f"The TLS files cannot be used ({named}): {error}.") from error
    return context


def process_registry() -> CollectorRegistry:
    """A registry with the `process_*` and `python_*` metrics of this process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
