"""From settings to a ready engine: what it reports, what it hands over, and why it ended."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from octavo_runtime import startup
from octavo_runtime.engine.async_llm_engine import AsyncLLMEngine
from octavo_runtime.engine.channel import Encoder
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.engine.messages import EngineFailed, LoadProgress, Shutdown
from octavo_runtime.errors import EngineDeadError, StartCause, StartError
from octavo_runtime.hub import ModelKind, ModelSource
from octavo_runtime.server.interfaces import TextLayer
from octavo_runtime.server.testing import EOS, ByteTokenizer, ready_message
from octavo_runtime.settings import Settings
from octavo_runtime.start_state import Phase, Problem, StartState
from octavo_runtime.startup import Startup, load_text

SOURCE = ModelSource("org/tiny", Path("/models/tiny"), ModelKind.SAFETENSORS, {"architectures": ["A"]}, {}, "abc")
TEXT = TextLayer(ByteTokenizer(), None, (EOS,))


class FakeProcess:
    """The engine process; `peer` is its end of the channel."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.killed_by: str | None = None

    def start(self, _json: str, _environment: dict[str, str], _heartbeat: Heartbeat) -> "FakeProcess":
        self.channel, self.peer = socket.socketpair()
        return self

    def send(self, message: object) -> None:
        self.peer.sendall(Encoder().encode(message))

    async def stop(self) -> None:
        self.calls.append("stop")

    def kill(self) -> None:
        self.calls.append("kill")

    def dump_stacks(self) -> None:
        self.calls.append("dump_stacks")

    def ended_by(self) -> str | None:
        return self.killed_by


class Start:
    """One start and what it gave."""

    def __init__(self, engine: AsyncLLMEngine, process: FakeProcess) -> None:
        self.engine = engine
        self.process = process
        self.state = StartState("org/tiny")
        self.texts: list[tuple[TextLayer, str]] = []
        self.progress: list[LoadProgress] = []
        self.startup = self.with_settings()

    def with_settings(self, **values: Any) -> Startup:
        self.startup = Startup(Settings.from_values({"model": "m", **values}), self.engine, self.state)
        return self.startup

    async def run(self) -> Any:
        return await self.startup.run(lambda text, root: self.texts.append((text, root)), self.progress.append)


@pytest.fixture
async def start(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    engine, process = AsyncLLMEngine(Heartbeat.create()), FakeProcess()
    process.start("", {}, engine.heartbeat)
    monkeypatch.setattr(startup, "EngineProcess", type("Process", (), {"start": lambda *_: process}))
    monkeypatch.setattr(startup, "find_model", found)
    monkeypatch.setattr(startup, "load_text", lambda *_: TEXT)
    yield Start(engine, process)
    engine.close()
    await asyncio.sleep(0)
    process.channel.close()
    process.peer.close()
    engine.heartbeat.close()


async def found(*_: object) -> ModelSource:
    return SOURCE


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


async def test_a_start_reports_hands_the_text_over_and_is_ready(start: Start) -> None:
    task = asyncio.create_task(start.run())
    await until(lambda: bool(start.texts))
    assert start.state.phase is Phase.LOADING
    assert (start.state.model.revision, start.state.model.architecture) == ("abc", "A")
    assert start.texts == [(TEXT, "/models/tiny")]
    start.process.send(LoadProgress(phase="weights", done_bytes=1, total_bytes=4))
    await until(lambda: start.state.total_bytes == 4)
    start.process.send(LoadProgress(phase="warm-up"))
    await until(lambda: start.state.phase is Phase.WARMING_UP)
    start.process.send(ready_message())
    assert await task == ready_message()
    assert start.state.phase is Phase.READY
    assert [step.phase for step in start.progress] == ["weights", "warm-up"]


async def test_an_engine_that_fails_is_an_engine_that_is_dead(start: Start) -> None:
    start.process.send(EngineFailed(cause="ModelCorrupt", message="cut"))
    with pytest.raises(EngineDeadError):
        await start.run()
    assert start.startup.why_dead(start.engine.dead or EngineFailed(cause="", message="")) == (
        StartCause.MODEL_CORRUPT,
        "cut",
    )


async def test_a_text_side_that_fails_is_a_start_error(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> TextLayer:
        raise StartError(StartCause.MODEL_CORRUPT, "no tokenizer")

    monkeypatch.setattr(startup, "load_text", broken)
    with pytest.raises(StartError, match="no tokenizer"):
        await start.run()


async def test_the_budget_is_for_everything_together(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    start.with_settings(startup_timeout=0.1)
    with pytest.raises(StartError, match="it was at: Loading") as caught:
        await start.run()
    assert caught.value.cause is StartCause.STARTUP_DEADLINE_EXCEEDED

    async def waiting(*_: object) -> ModelSource:
        start.state.problem = Problem(StartCause.MODEL_RATE_LIMITED, "The hub limits the rate.")
        await asyncio.sleep(60)
        return SOURCE

    monkeypatch.setattr(startup, "find_model", waiting)
    with pytest.raises(StartError, match="limits the rate") as caught:
        await start.run()
    assert caught.value.cause is StartCause.MODEL_RATE_LIMITED


async def test_the_hub_is_waited_for_a_little_less_than_the_budget(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float | None] = []

    async def note(_name: str, _options: object, _state: object, deadline: float | None) -> ModelSource:
        given.append(deadline)
        raise StartError(StartCause.HUB_UNREACHABLE, "away")

    monkeypatch.setattr(startup, "find_model", note)
    for values in ({}, {"startup_timeout": 60}):
        start.with_settings(**values)
        with pytest.raises(StartError):
            await start.run()
    now = asyncio.get_running_loop().time()
    assert given[0] is None
    assert given[1] is not None
    assert 55 < given[1] - now < 60


async def test_an_engine_that_serves_is_told_and_one_that_loads_is_ended(start: Start) -> None:
    start.startup.kill()
    await start.startup.stop()
    start.startup.dump_stacks()
    assert start.process.calls == []  # there is none yet
    task = asyncio.create_task(start.run())
    await until(lambda: bool(start.texts))
    await start.startup.stop()
    assert start.process.calls == ["kill"]
    start.process.send(ready_message())
    await task
    await start.startup.stop()
    assert start.process.calls == ["kill", "stop"]
    await asyncio.sleep(0.01)
    assert start.process.peer.recv(100) == Encoder().encode(Shutdown())


async def test_a_killed_engine_names_the_signal_or_the_lack_of_memory(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start.process.send(ready_message())
    await start.run()
    died = EngineFailed(cause="EngineDied", message="The engine process ended unexpectedly.")
    assert start.startup.why_dead(died) == (StartCause.ENGINE_DIED, died.message)
    start.process.killed_by = "SIGKILL"
    cause, message = start.startup.why_dead(died)
    assert (cause, "SIGKILL" in message) == (StartCause.ENGINE_DIED, True)
    monkeypatch.setattr(startup, "count_oom_kills", lambda: 1_000_000)
    assert start.startup.why_dead(died)[0] is StartCause.OUT_OF_MEMORY
    hung = EngineFailed(cause="EngineHung", message="no life")
    assert start.startup.why_dead(hung) == (StartCause.ENGINE_HUNG, "no life")


def test_the_text_side_of_a_real_model(tmp_path: Path) -> None:
    from octavo_runtime.hub import resolve_model

    settings = Settings.from_values({"model": "embedded", "cache_dir": tmp_path})
    text = load_text(settings, resolve_model("embedded"))
    assert text.chat_template is not None
    assert text.tokenizer.decode(text.tokenizer.encode("Paris")) == "Paris"
