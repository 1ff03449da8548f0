import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_runtime.engine.channel import Channel, ChannelClosedError, Encoder, from_engine_frames
from octavo_runtime.engine.messages import (
    AbortRequest,
    AddRequest,
    FinishReason,
    RequestFinished,
    SequenceOutput,
    StepOutputs,
)
from octavo_runtime.engine.sampling_params import SamplingParams


def outputs(request_id: str) -> StepOutputs:
    return StepOutputs(
        sequences=[SequenceOutput(request_id=request_id, index=0, token_ids=[1, 2])],
        finished=[RequestFinished(request_id=request_id, reason=FinishReason.STOP)],
    )


@given(st.lists(st.text(max_size=5), max_size=6), st.integers(1, 40))
def test_frames_survive_any_split_of_the_byte_stream(names: list[str], piece: int) -> None:
    encoder, frames = Encoder(), from_engine_frames()
    data = b"".join(encoder.encode(outputs(name)) for name in names)
    got = [m for start in range(0, len(data), piece) for m in frames.feed(data[start : start + piece])]
    assert got == [outputs(name) for name in names]


def test_channel_receives_what_the_front_end_sent() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    request = AddRequest(request_id="a", prompt_token_ids=[1], params=SamplingParams(logit_bias={3: 1.5}, stop=("x",)))
    with ours, theirs:
        theirs.sendall(Encoder().encode(request) + Encoder().encode(AbortRequest(request_id="a", index=1)))
        assert channel.receive(1.0) == [request, AbortRequest(request_id="a", index=1)]


def test_channel_returns_nothing_when_nothing_came() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert Channel(ours).receive(0.0) == []


def test_channel_reports_that_the_front_end_is_gone() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    theirs.close()
    with ours:
        with pytest.raises(ChannelClosedError):
            channel.receive(1.0)
        with pytest.raises(ChannelClosedError):
            channel.send(outputs("a"))
