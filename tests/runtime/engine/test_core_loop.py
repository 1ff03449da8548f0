import socket
from collections.abc import Callable
from typing import Any

import pytest

from octavo_runtime.engine.channel import Channel, ChannelClosedError, Encoder, from_engine_frames
from octavo_runtime.engine.core_loop import run_forever
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.engine.messages import (
    AbortRequest,
    AddRequest,
    FinishReason,
    ResetPrefixCache,
    SequenceOutput,
    Shutdown,
    StepOutputs,
)
from octavo_runtime.engine.sampling_params import SamplingParams


class RecordingEngine:
    """One step per added request, each giving one token."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.waiting: list[str] = []

    def add_request(self, request: AddRequest) -> None:
        self.calls.append(f"add {request.request_id}")
        self.waiting.append(request.request_id)

    def abort_request(self, request_id: str, index: int | None) -> None:
        self.calls.append(f"abort {request_id} {index}")

    def abort_all(self) -> None:
        self.calls.append("abort all")

    def reset_prefix_cache(self) -> None:
        self.calls.append("reset")

    def has_unfinished_requests(self) -> bool:
        return bool(self.waiting)

    def step(self) -> StepOutputs:
        name = self.waiting.pop()
        return StepOutputs(sequences=[SequenceOutput(request_id=name, index=0, token_ids=[7])])


def test_loop_applies_messages_in_order_steps_and_leaves_on_shutdown() -> None:
    ours, theirs = socket.socketpair()
    engine, encoder, heartbeat = RecordingEngine(), Encoder(), Heartbeat.create()
    messages = [
        AddRequest(request_id="a", prompt_token_ids=[1], params=SamplingParams()),
        AbortRequest(request_id="b", index=2),
        ResetPrefixCache(),
    ]
    with ours, theirs:
        theirs.sendall(b"".join(encoder.encode(m) for m in messages))
        theirs.shutdown(socket.SHUT_WR)  # the loop meets the end of the stream after its step
        with pytest.raises(ChannelClosedError):
            run_forever(engine, Channel(ours), heartbeat)  # type: ignore[arg-type]
        sent = from_engine_frames().feed(theirs.recv(4096))
    assert engine.calls == ["add a", "abort b 2", "reset"]
    assert sent == [StepOutputs(sequences=[SequenceOutput(request_id="a", index=0, token_ids=[7])])]
    assert heartbeat.steps >= 2
    heartbeat.close()


def test_shutdown_ends_running_waiting_and_just_added_requests_with_abort(make_engine: Callable[..., Any]) -> None:
    ours, theirs = socket.socketpair()
    harness, encoder, heartbeat = make_engine(max_num_seqs=1), Encoder(), Heartbeat.create()
    harness.add("running", [1] * 5)
    harness.add("waiting", [2] * 5)
    harness.step()
    added = AddRequest(request_id="added", prompt_token_ids=[1], params=SamplingParams())
    with ours, theirs:
        theirs.sendall(encoder.encode(added) + encoder.encode(Shutdown()))
        run_forever(harness.engine, Channel(ours), heartbeat)
        (outputs,) = from_engine_frames().feed(theirs.recv(4096))
    assert isinstance(outputs, StepOutputs)
    assert {end.request_id: end.reason for end in outputs.finished} == dict.fromkeys(
        ("running", "waiting", "added"), FinishReason.ABORT
    )
    assert outputs.stats.iteration_tokens == 0
    assert not harness.engine.has_unfinished_requests()
    heartbeat.close()


def test_loop_returns_on_shutdown() -> None:
    ours, theirs = socket.socketpair()
    heartbeat = Heartbeat.create()
    with ours, theirs:
        theirs.sendall(Encoder().encode(Shutdown()))
        run_forever(RecordingEngine(), Channel(ours), heartbeat)  # type: ignore[arg-type]
    heartbeat.close()
