"""`Startup`: from settings to a model that answers: find it, fetch it, start its engine, read its tokenizer.

Reports to a `StartState`; ends within --startup-timeout or with the cause that was in the way. Knows no HTTP: what it gets
ready is handed to callbacks.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from octavo_runtime.daemon_thread import in_daemon_thread
from octavo_runtime.engine.async_llm_engine import AsyncLLMEngine
from octavo_runtime.engine.messages import EngineFailed, EngineReady, LoadProgress
from octavo_runtime.errors import StartCause
from octavo_runtime.hub import ModelSource, find_model
from octavo_runtime.launcher import EngineProcess
from octavo_runtime.process_state import count_oom_kills
from octavo_runtime.server.interfaces import SamplingDefaults, TextLayer
from octavo_runtime.settings import Settings, engine_environment
from octavo_runtime.start_state import StartState
from octavo_runtime.text.chat_template import ChatTemplate
from octavo_runtime.text.generation_defaults import generation_defaults
from octavo_runtime.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

_MARGIN_SECONDS = 1.0
"""Waiting for a hub ends this much before the budget, so that its own cause is told."""


class OnText(Protocol):
    """Takes the model's text side and the place that it came from."""

    def __call__(self, text: TextLayer, root: str) -> None: ...


class Startup:
    """One start, and the engine process that comes of it."""

    def __init__(self, settings: Settings, engine: AsyncLLMEngine, state: StartState) -> None:
        self.state = state
        self._settings = settings
        self._engine = engine
        self._process: EngineProcess | None = None
        self._oom_kills = count_oom_kills()

    async def run(self, on_text: OnText, on_progress: Callable[[LoadProgress], None]) -> EngineReady:
        """Raises StartError, or EngineDeadError (then `engine.dead` has the cause)."""
        budget = self._settings.server.startup_timeout
        try:
            async with asyncio.timeout(budget or None) as limit:
                return await self._run(on_text, on_progress, time.monotonic() + budget if budget else None)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise self.state.too_late(budget) from error

    async def _run(
        self, on_text: OnText, on_progress: Callable[[LoadProgress], None], deadline: float | None
    ) -> EngineReady:
        chosen = self._settings.model
        patience = None if deadline is None else deadline - _MARGIN_SECONDS
        source = await find_model(chosen.model, self._settings.fetch_options(), self.state, patience)
        self.state.found(source.facts())
        settings_json = self._settings.with_model(source.path).to_json()
        environment = engine_environment(self._settings)
        self._process = EngineProcess.start(settings_json, environment, self._engine.heartbeat)
        await self._engine.attach(self._process.channel)

        def progress(step: LoadProgress) -> None:
            self.state.loading(step)
            on_progress(step)

        async def read_text() -> None:
            on_text(await in_daemon_thread(load_text, self._settings, source), str(source.path))

        _, ready = await asyncio.gather(read_text(), self._engine.wait_ready(progress))
        self.state.ready(ready.timings, ready.architecture)
        return ready

    async def stop(self) -> None:
        """An engine that serves is told and waited for; one that still loads has nothing to lose."""
        if self._process is None:
            return
        if self._engine.ready is None:
            self._process.kill()
            return
        self._engine.shutdown()
        await self._process.stop()

    def kill(self) -> None:
        """End the engine process at once; safe when there is none."""
        if self._process is not None:
            self._process.kill()

    def dump_stacks(self) -> None:
        """Have the engine's stacks written to the log."""
        if self._process is not None:
            self._process.dump_stacks()

    def why_dead(self, failure: EngineFailed) -> tuple[StartCause, str]:
        """What the engine said last, or, when it was killed before it could, by what."""
        cause, killed_by = StartCause(failure.cause), self._process and self._process.ended_by()
        if not killed_by or cause is not StartCause.ENGINE_DIED:
            return cause, failure.message
        if count_oom_kills() > self._oom_kills:
            message = (
                "The engine process was killed because the container ran out of memory; give it more, or lower "
                "--kv-cache-memory-bytes."
            )
            return StartCause.OUT_OF_MEMORY, message
        message = f"The engine process was killed by {killed_by}; if memory ran out, lower --kv-cache-memory-bytes."
        return cause, message


def load_text(settings: Settings, source: ModelSource) -> TextLayer:
    """Tokenizer, chat template and sampling defaults of the model."""
    model = settings.model
    tokenizer = Tokenizer.load(source, settings.log.tokenizer_cache, model.tokenizer)
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
