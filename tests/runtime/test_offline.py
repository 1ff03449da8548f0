"""Running requests to the end: order, stop strings, refusals, and nothing left behind."""

from collections import deque

import pytest

from octavo_runtime.engine.messages import AddRequest, FinishReason, RequestFinished, SequenceOutput, StepOutputs
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.errors import InvalidRequestError
from octavo_runtime.offline import OfflineRunner, Prompt


class Bytes:
    """Token i is byte i."""

    special_ids: frozenset[int] = frozenset()

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id])

    def token_text(self, token_id: int) -> str:
        return chr(token_id)


class EchoEngine:
    """Says each prompt back, a token a step; refuses an empty one. Later requests end first."""

    def __init__(self) -> None:
        self.open: dict[str, deque[int]] = {}
        self.ended: list[RequestFinished] = []
        self.aborts: list[tuple[str, int | None]] = []

    def add_request(self, request: AddRequest) -> None:
        if not request.prompt_token_ids:
            self._end(request.request_id, FinishReason.ERROR, "The prompt is empty.")
        else:
            self.open[request.request_id] = deque(request.prompt_token_ids)

    def abort_request(self, request_id: str, index: int | None = None) -> None:
        self.aborts.append((request_id, index))
        if self.open.pop(request_id, None) is not None:
            self._end(request_id, FinishReason.STOP if index is not None else FinishReason.ABORT)

    def has_unfinished_requests(self) -> bool:
        return bool(self.open or self.ended)

    def step(self) -> StepOutputs:
        sequences = []
        for request_id, tokens in reversed(list(self.open.items())):
            token = tokens.popleft()
            reason = None if tokens else FinishReason.LENGTH
            sequences.append(SequenceOutput(request_id=request_id, index=0, token_ids=[token], finish_reason=reason))
            if reason is not None:
                del self.open[request_id]
                self._end(request_id, reason)
        ended, self.ended = self.ended, []
        return StepOutputs(sequences=sequences, finished=ended)

    def _end(self, request_id: str, reason: FinishReason, error: str | None = None) -> None:
        self.ended.append(RequestFinished(request_id=request_id, reason=reason, error=error))


@pytest.fixture
def engine() -> EchoEngine:
    return EchoEngine()


@pytest.fixture
def runner(engine: EchoEngine) -> OfflineRunner:
    return OfflineRunner(engine, Bytes(), ())


def prompt(text: str) -> Prompt:
    return Prompt(list(text.encode()), text)


def test_outputs_come_in_the_order_of_the_prompts(runner: OfflineRunner) -> None:
    steps: list[tuple[int, int]] = []
    texts = ["long one", "b", "ccc"]
    outputs = runner.run([prompt(text) for text in texts], [SamplingParams()] * 3, lambda *step: steps.append(step))
    assert [output.outputs[0].text for output in outputs] == texts
    assert [output.prompt for output in outputs] == texts
    assert tuple(map(sum, zip(*steps, strict=True))) == (3, 12)


def test_stop_string_aborts_the_sequence(runner: OfflineRunner, engine: EchoEngine) -> None:
    (output,) = runner.run([prompt("one. two")], [SamplingParams(stop=(".",))])
    assert (output.outputs[0].text, output.outputs[0].stop_reason) == ("one", ".")
    assert engine.aborts == [("offline-0", 0)]


def test_refused_request_names_the_reason_and_leaves_nothing_behind(runner: OfflineRunner, engine: EchoEngine) -> None:
    with pytest.raises(InvalidRequestError, match="The prompt is empty"):
        runner.run([prompt("ok"), prompt("")], [SamplingParams()] * 2)
    assert not engine.has_unfinished_requests()


def test_interrupt_leaves_nothing_behind(runner: OfflineRunner, engine: EchoEngine) -> None:
    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run([prompt("abc")], [SamplingParams()], interrupt)
    assert not engine.has_unfinished_requests()


def test_stream_gives_the_same_text_in_pieces(runner: OfflineRunner) -> None:
    pieces = list(runner.stream(prompt("héllo"), SamplingParams()))
    assert pieces == ["h", "é", "l", "l", "o"]


def test_closed_stream_aborts(runner: OfflineRunner, engine: EchoEngine) -> None:
    stream = runner.stream(prompt("abc"), SamplingParams())
    assert next(stream) == "a"
    stream.close()
    assert not engine.has_unfinished_requests()


def test_stream_of_a_refused_request_raises(runner: OfflineRunner) -> None:
    with pytest.raises(InvalidRequestError, match="empty"):
        list(runner.stream(prompt(""), SamplingParams()))
