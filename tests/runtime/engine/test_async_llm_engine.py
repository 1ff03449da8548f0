import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing

import msgspec
import pytest

from octavo_runtime.engine.async_llm_engine import AsyncLLMEngine
from octavo_runtime.engine.channel import Encoder, Frames
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.engine.messages import (
    AbortRequest,
    AddRequest,
    EngineFailed,
    FinishReason,
    FromEngine,
    LoadProgress,
    RequestFinished,
    SequenceOutput,
    StepOutputs,
    ToEngine,
)
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.errors import EngineDeadError


class Peer:
    """The engine process's end, driven by the test."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.frames: Frames[ToEngine] = Frames(msgspec.msgpack.Decoder(ToEngine))

    async def receive(self) -> list[ToEngine]:
        data = await asyncio.get_running_loop().sock_recv(self.sock, 65536)
        return self.frames.feed(data)

    async def send(self, *messages: FromEngine) -> None:
        data = b"".join(Encoder().encode(m) for m in messages)
        await asyncio.get_running_loop().sock_sendall(self.sock, data)


@pytest.fixture
async def pair() -> AsyncIterator[tuple[AsyncLLMEngine, Peer]]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    heartbeat = Heartbeat.create()
    engine = await AsyncLLMEngine.connect(ours, heartbeat)
    yield engine, Peer(theirs)
    theirs.close()
    await engine.wait_dead()
    heartbeat.close()


def add(name: str) -> AddRequest:
    return AddRequest(request_id=name, prompt_token_ids=[1], params=SamplingParams())


def token(name: str, token_id: int) -> SequenceOutput:
    return SequenceOutput(request_id=name, index=0, token_ids=[token_id])


def finished(name: str) -> RequestFinished:
    return RequestFinished(request_id=name, reason=FinishReason.STOP)


async def test_each_request_gets_its_own_events_and_ends_with_the_terminal_one(
    pair: tuple[AsyncLLMEngine, Peer],
) -> None:
    engine, peer = pair

    async def run(name: str) -> list[object]:
        return [event async for event in engine.generate(add(name))]

    tasks = [asyncio.create_task(run(name)) for name in "ab"]
    received: list[ToEngine] = []
    while len(received) < 2:
        received += await peer.receive()
    await peer.send(
        StepOutputs(sequences=[token("a", 1), token("b", 2)]),
        StepOutputs(sequences=[token("b", 3)], finished=[finished("a"), finished("b")]),
    )
    assert await tasks[0] == [token("a", 1), finished("a")]
    assert await tasks[1] == [token("b", 2), token("b", 3), finished("b")]
    assert engine.num_requests == 0


async def test_leaving_the_iteration_aborts_the_request_in_the_engine(pair: tuple[AsyncLLMEngine, Peer]) -> None:
    engine, peer = pair
    async with aclosing(engine.generate(add("a"))) as events:
        task = asyncio.ensure_future(anext(events))
        await peer.receive()
        await peer.send(StepOutputs(sequences=[token("a", 1)]))
        await task
    assert await peer.receive() == [AbortRequest(request_id="a")]
    assert engine.num_requests == 0


async def test_a_dying_engine_ends_every_open_request_with_one_error(pair: tuple[AsyncLLMEngine, Peer]) -> None:
    engine, peer = pair

    async def run() -> list[object]:
        return [event async for event in engine.generate(add("a"))]

    task = asyncio.create_task(run())
    await peer.receive()
    await peer.send(EngineFailed(cause="Internal", message="it broke"))
    assert await task == [RequestFinished(request_id="a", reason=FinishReason.ERROR, error="it broke")]
    with pytest.raises(EngineDeadError, match="it broke"):
        await anext(engine.generate(add("b")))


async def test_waiting_for_ready_reports_progress_and_fails_with_the_engines_cause(
    pair: tuple[AsyncLLMEngine, Peer],
) -> None:
    engine, peer = pair
    seen: list[LoadProgress] = []
    task = asyncio.create_task(engine.wait_ready(seen.append))
    await peer.send(LoadProgress(phase="weights", done_bytes=1, total_bytes=2))
    await asyncio.sleep(0.01)
    await peer.send(EngineFailed(cause="ModelCorrupt", message="the file is cut"))
    with pytest.raises(EngineDeadError, match="the file is cut"):
        await task
    assert [p.phase for p in seen] == ["weights"]
    assert engine.dead is not None
    assert engine.dead.cause == "ModelCorrupt"


async def test_a_request_id_in_use_is_refused(pair: tuple[AsyncLLMEngine, Peer]) -> None:
    engine, peer = pair
    events = engine.generate(add("a"))
    task = asyncio.ensure_future(anext(events))
    await peer.receive()
    with pytest.raises(ValueError, match="in use"):
        await anext(engine.generate(add("a")))
    await peer.send(StepOutputs(sequences=[token("a", 1)]))
    await task
    await events.aclose()


async def test_before_a_process_is_attached_nothing_is_known_and_nothing_breaks() -> None:
    heartbeat = Heartbeat.create()
    engine = AsyncLLMEngine(heartbeat)
    assert (engine.ready, engine.dead, engine.num_requests, engine.has_work) == (None, None, 0, False)
    assert engine.heartbeat_age() == 0
    engine.abort_all()
    engine.shutdown()
    engine.close()
    heartbeat.close()


async def test_work_is_known_to_the_front_end_too(pair: tuple[AsyncLLMEngine, Peer]) -> None:
    engine, peer = pair
    events = engine.generate(add("a"))
    task = asyncio.ensure_future(anext(events))
    await peer.receive()
    assert engine.has_work  # though the engine has not said so
    await peer.send(StepOutputs(sequences=[token("a", 1)]))
    await task
    await events.aclose()
    assert not engine.has_work
    engine.heartbeat.beat(has_work=True)
    assert engine.has_work
