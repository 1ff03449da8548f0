from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from octavo_runtime.engine.plan import RowSampling
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.worker import logits_processing
from octavo_runtime.worker.logits_processing import LogitsProcessor, changes_logits

BANNED = float("-inf")


def process(
    logits: Sequence[float],
    prompt: Sequence[int] = (),
    output: Sequence[int] = (),
    banned: tuple[int, ...] = (),
    **params: Any,
) -> list[float]:
    values = torch.tensor(logits, dtype=torch.float32)
    sampling = RowSampling(SamplingParams(**params), (0.5,), prompt, output, banned)
    assert changes_logits(sampling)
    LogitsProcessor().process([(values, sampling)])
    return values.tolist()


def test_plain_sampling_changes_nothing() -> None:
    assert not changes_logits(RowSampling(SamplingParams(top_k=5, logprobs=3), (0.5,), [1], [2]))


def test_bias_is_clamped_to_a_hundred_and_ignores_unknown_ids() -> None:
    assert process([0.0, 1.0], logit_bias={0: 500.0, 1: -0.5, 99: 3.0}) == [100.0, 0.5]


def test_only_allowed_tokens_stay() -> None:
    assert process([1.0, 2.0, 3.0], allowed_token_ids=(0, 2, 77)) == [1.0, BANNED, 3.0]


def test_banned_tokens_go() -> None:
    assert process([1.0, 2.0, 3.0], banned=(2, 50)) == [1.0, 2.0, BANNED]


def test_presence_and_frequency_count_the_output_only() -> None:
    logits = process([0.0, 0.0, 0.0], prompt=[0, 0], output=[1, 1, 2], presence_penalty=0.5, frequency_penalty=0.25)
    assert logits == [0.0, -1.0, -0.75]


def test_repetition_counts_prompt_and_output_once() -> None:
    logits = process([2.0, -2.0, 4.0, 1.0], prompt=[0, 0, 1], output=[2, 2], repetition_penalty=2.0)
    assert logits == [1.0, -4.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([], [0.0, 0.0, 0.0, BANNED]),
        ([1], [0.0, 0.0, BANNED, BANNED]),
        ([2, 1], [0.0, 0.0, BANNED, BANNED]),
        ([1, 0], [0.0, 0.0, 0.0, BANNED]),
    ],
)
def test_the_last_token_of_a_bad_word_goes_once_its_beginning_was_generated(
    output: list[int], expected: list[float]
) -> None:
    assert process([0.0] * 4, prompt=[0], output=output, bad_words_token_ids=((3,), (1, 2))) == expected


def test_the_beginning_of_a_bad_word_in_the_prompt_does_not_count() -> None:
    assert process([0.0] * 3, prompt=[1], output=[], bad_words_token_ids=((1, 2),)) == [0.0, 0.0, 0.0]


def test_named_tokens_become_tensors_once_per_request_and_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[SamplingParams] = []
    original = logits_processing._named_tokens

    def count(params: SamplingParams, vocab_size: int) -> Any:
        made.append(params)
        return original(params, vocab_size)

    monkeypatch.setattr(logits_processing, "_named_tokens", count)
    processor = LogitsProcessor()
    first, second = (SamplingParams(logit_bias={0: bias}) for bias in (1.0, 2.0))

    def step(*rows: SamplingParams) -> list[float]:
        logits = torch.zeros(len(rows), 3)
        processor.process((logits[i], RowSampling(params, (0.5,), [1], [2] * i)) for i, params in enumerate(rows))
        return logits[:, 0].tolist()

    assert step(first, second, first) == [1.0, 2.0, 1.0]
    assert step(second, first) == [2.0, 1.0]
    assert made == [first, second]
    assert step() == []
    assert processor._named == {}


def test_the_work_of_a_row_does_not_grow_by_an_operation_per_biased_token() -> None:
    class Counter(TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.calls += 1
            return func(*args, **(kwargs or {}))

    def num_operations(num_biases: int) -> int:
        params = SamplingParams(logit_bias=dict.fromkeys(range(num_biases), 1.0))
        with Counter() as counter:
            LogitsProcessor().process([(torch.zeros(2000), RowSampling(params, (0.5,), [1], []))])
        return counter.calls

    assert num_operations(1000) == num_operations(10)
