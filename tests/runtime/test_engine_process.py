"""What the engine process tells over its channel, and its exit code, for every way to start and to end."""

import errno
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from octavo_runtime import engine_process
from octavo_runtime.engine.channel import Channel, ChannelClosedError, from_engine_frames
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.engine.messages import AddRequest, EngineFailed, FinishReason, FromEngine, LoadProgress
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.engine_process import build_llm_engine, engine_ready, serve_channel
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.hub import ModelKind, ModelSource
from octavo_runtime.launcher import EngineProcess
from octavo_runtime.settings import Settings, engine_environment
from octavo_runtime.worker.config import WorkerReady

SETTINGS = Settings.from_values({"model": "m"})
SOURCE = ModelSource("m", Path("m"), ModelKind.SAFETENSORS, {}, {})


def worker_ready() -> WorkerReady:
    return WorkerReady(
        model=cast(Any, SimpleNamespace(vocab_size=8, architecture="LlamaForCausalLM")),
        backend="fake",
        dtype="float32",
        num_blocks=16,
        num_host_blocks=0,
        block_size=16,
        max_model_len=64,
        weight_bytes=1,
        cache_bytes=1,
        timings={},
    )


class FakeWorker:
    def __init__(self, settings: object) -> None:
        self.settings = settings

    def start(self, _progress: object) -> WorkerReady:
        return worker_ready()


@pytest.mark.parametrize(
    "values",
    [{}, {"max_num_batched_tokens": 64}, {"max_num_seqs": 256}, {"max_num_seqs": 7, "max_num_batched_tokens": 7}],
)
def test_what_is_reported_is_what_the_engine_works_with(values: dict[str, int]) -> None:
    settings = Settings.from_values({"model": "m", **values})
    told, config = engine_ready(settings, worker_ready()), settings.scheduler_config(64)
    assert (told.max_num_seqs, told.max_model_len) == (config.max_num_seqs, config.max_model_len)
    assert told.max_num_seqs <= config.max_num_batched_tokens


def test_the_engine_knows_the_models_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "Worker", FakeWorker)
    source = ModelSource("m", Path("m"), ModelKind.SAFETENSORS, {}, {})
    engine = build_llm_engine(Settings.from_values({"model": "m"}), source, print).engine
    engine.add_request(AddRequest(request_id="a", prompt_token_ids=[8], params=SamplingParams()))
    (end,) = engine.step().finished
    assert end.reason is FinishReason.ERROR


class Front:
    """The other end of the channel."""

    def __init__(self) -> None:
        self.ours, self.socket = socket.socketpair()
        self.channel = Channel(self.ours)
        self.heartbeat = Heartbeat.create()

    def run(self) -> int:
        return serve_channel(SETTINGS, self.channel, self.heartbeat)

    def received(self) -> list[FromEngine]:
        self.socket.settimeout(5)
        return from_engine_frames().feed(self.socket.recv(1 << 16))


@pytest.fixture
def front(monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    """The model is found, the engine starts, and the loop ends at once."""
    made = Front()

    def build(_settings: Settings, _source: ModelSource, progress: Any) -> Any:
        progress(LoadProgress(phase="weights", done_bytes=1, total_bytes=2))
        return SimpleNamespace(engine=None, worker=worker_ready())

    monkeypatch.setattr(engine_process, "resolve_model", lambda *_: SOURCE)
    monkeypatch.setattr(engine_process, "build_llm_engine", build)
    monkeypatch.setattr(engine_process, "run_forever", lambda *_: None)
    yield made
    made.ours.close()
    made.socket.close()
    made.heartbeat.close()


def test_a_start_is_told_step_by_step_and_an_ordered_end_is_zero(front: Front) -> None:
    assert front.run() == 0
    progress, ready = front.received()
    assert progress == LoadProgress(phase="weights", done_bytes=1, total_bytes=2)
    assert ready == engine_ready(SETTINGS, worker_ready())


def failing(error: BaseException) -> Any:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("place", ["resolve_model", "build_llm_engine", "run_forever"])
@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (StartError(StartCause.MODEL_CORRUPT, "Download it again."), StartCause.MODEL_CORRUPT),
        (MemoryError(), StartCause.OUT_OF_MEMORY),
        (OSError(errno.ENOSPC, "No space left on device"), StartCause.DISK_FULL),
        (RuntimeError("what only the log should know"), StartCause.INTERNAL),
    ],
)
def test_every_failure_is_told_with_its_cause_before_exit_one(
    front: Front, monkeypatch: pytest.MonkeyPatch, place: str, error: BaseException, cause: StartCause
) -> None:
    monkeypatch.setattr(engine_process, place, failing(error))
    assert front.run() == 1
    last = front.received()[-1]
    assert isinstance(last, EngineFailed)
    assert last.cause == cause.value
    assert last.message.endswith(".")
    if isinstance(error, StartError):
        assert last.message == str(error)


def test_a_front_end_that_is_gone_is_an_ordered_end(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "run_forever", failing(ChannelClosedError("gone")))
    assert front.run() == 0


def test_a_failure_that_nobody_can_hear_still_exits_one(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "resolve_model", failing(RuntimeError("broken")))
    front.socket.close()
    assert front.run() == 1


def test_the_program_tells_over_its_channel_why_it_cannot_start(tmp_path: Path) -> None:
    chosen = Settings.from_values({"model": str(tmp_path / "none")})
    heartbeat = Heartbeat.create()
    process = EngineProcess.start(chosen.to_json(), engine_environment(chosen), heartbeat)
    process.channel.settimeout(60)
    frames, told = from_engine_frames(), []
    while data := process.channel.recv(1 << 16):
        told += frames.feed(data)
    assert [(type(message), message.cause) for message in told] == [(EngineFailed, "ModelNotFound")]  # type: ignore[union-attr]
    assert process.popen.wait(10) == 1
    process.channel.close()
    heartbeat.close()
