"""Events of one request become one output."""

import pytest

from octavo_runtime.engine.messages import FinishReason, PromptLogprobs, RequestFinished, SequenceOutput, TokenLogprobs
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.request_output import RequestCollector


class Bytes:
    """Token i is byte i."""

    special_ids = frozenset({0})

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id])

    def token_text(self, token_id: int) -> str:
        return chr(token_id)


def collector(params: SamplingParams) -> RequestCollector:
    return RequestCollector("r", "p", [112], params, Bytes(), (0,))


def tokens(text: str, index: int = 0, finish: FinishReason | None = None, cumulative: float = 0.0) -> SequenceOutput:
    logprobs = [TokenLogprobs(token_id=ord(c), logprob=-1.0, rank=1, top=[(ord(c), -1.0), (65, -2.0)]) for c in text]
    return SequenceOutput(
        request_id="r",
        index=index,
        token_ids=[ord(c) for c in text],
        logprobs=logprobs,
        finish_reason=finish,
        cumulative_logprob=cumulative,
    )


def done(reason: FinishReason = FinishReason.STOP) -> RequestFinished:
    return RequestFinished(request_id="r", reason=reason, num_cached_tokens=16)


def test_tokens_become_text_and_log_probabilities() -> None:
    one = collector(SamplingParams(logprobs=2))
    one.take(tokens("he", cumulative=-2.0))
    assert not one.output().finished
    one.take(tokens("y\0", finish=FinishReason.STOP, cumulative=-4.0))
    one.take(done())
    output = one.output()
    (completion,) = output.outputs
    assert (completion.text, completion.finish_reason, completion.stop_reason) == ("hey", "stop", None)
    assert (completion.token_ids, completion.cumulative_logprob) == ((104, 101, 121, 0), -4.0)
    assert completion.logprobs is not None
    assert completion.logprobs[0][104].decoded_token == "h"
    assert (completion.logprobs[0][65].rank, completion.logprobs[0][65].logprob) == (2, -2.0)
    assert (output.finished, output.num_cached_tokens, output.prompt) == (True, 16, "p")


def test_log_probabilities_are_left_out_when_nobody_asked() -> None:
    one = collector(SamplingParams())
    one.take(tokens("a", finish=FinishReason.LENGTH))
    (completion,) = one.output().outputs
    assert (completion.logprobs, completion.cumulative_logprob, completion.finish_reason) == (None, None, "length")


def test_stop_string_ends_the_sequence_whatever_the_engine_says_after() -> None:
    one = collector(SamplingParams(stop=("b",), logprobs=0))
    delta = one.take(tokens("abc"))
    assert delta is not None
    assert delta.stopped_by == "b"
    one.take(tokens("d", finish=FinishReason.ABORT))
    one.take(done(FinishReason.STOP))
    (completion,) = one.output().outputs
    assert (completion.text, completion.finish_reason, completion.stop_reason) == ("a", "stop", "b")
    assert completion.logprobs is not None
    assert len(completion.logprobs) == len(completion.token_ids) == 2


def test_best_sequences_come_first() -> None:
    one = collector(SamplingParams(n=2, best_of=3))
    for index, (text, cumulative) in enumerate([("a", -3.0), ("b", -1.0), ("c", -2.0)]):
        one.take(tokens(text, index, FinishReason.LENGTH, cumulative))
    assert [(output.index, output.text) for output in one.output().outputs] == [(0, "b"), (1, "c")]


def test_prompt_log_probabilities_begin_with_none() -> None:
    one = collector(SamplingParams(prompt_logprobs=1))
    entry = TokenLogprobs(token_id=66, logprob=-0.5, rank=3, top=[(65, -0.1)])
    one.take(PromptLogprobs(request_id="r", logprobs=[entry]))
    places = one.output().prompt_logprobs
    assert places is not None
    assert places[0] is None
    assert places[1] is not None
    assert {token: place.rank for token, place in places[1].items()} == {66: 3, 65: 1}


@pytest.mark.parametrize("reason", [FinishReason.ABORT, FinishReason.ERROR])
def test_sequence_without_an_end_of_its_own_takes_the_requests(reason: FinishReason) -> None:
    one = collector(SamplingParams())
    one.take(tokens("a"))
    one.take(done(reason))
    assert one.output().outputs[0].finish_reason == reason.value
