"""Streamed text equals the whole text for every split, with stop strings and the stop token in any place."""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.text.output_processor import OutputProcessor

PIECES = ("a", " the", "👋🏽", "e\u0301", "日本語", "👨‍👩‍👧", "\n", "END", "E", "ND", "🇫🇷", "<|im_end|>", "\ufffd")
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=20)
STOPS = st.lists(st.sampled_from(("END", "日本", "\u0301", "👋", "the", "🏽", "NDE")), max_size=3, unique=True)
SPLITS = st.lists(st.integers(1, 5), max_size=40)
ONCE_PER_SESSION = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def run(processor: OutputProcessor, ids: Sequence[int], sizes: Sequence[int]) -> tuple[str, int, str | None]:
    """(text, tokens taken, stop string) of pushing `ids` in pieces of `sizes`, the last piece finished."""
    text, taken, at = "", 0, 0
    for size in [*sizes, len(ids)]:
        piece, at = ids[at : at + size], at + size
        delta = processor.push(piece, finished=at >= len(ids))
        text, taken = text + delta.text, taken + len(delta.token_ids)
        if delta.stopped_by is not None or at >= len(ids):
            return text, taken, delta.stopped_by
    raise AssertionError


@ONCE_PER_SESSION
@given(text=TEXTS, stops=STOPS, sizes=SPLITS, include=st.booleans(), skip=st.booleans(), minimum=st.integers(0, 4))
def test_stream_equals_whole_text_with_the_real_tokenizer(
    tokenizer: Any, text: str, stops: list[str], sizes: list[int], include: bool, skip: bool, minimum: int
) -> None:
    params = SamplingParams(
        stop=tuple(stops), include_stop_str_in_output=include, skip_special_tokens=skip, min_tokens=minimum
    )
    ids = tokenizer.encode(text)
    prompt = tokenizer.encode("Tell me: ")
    streamed = run(OutputProcessor(tokenizer, params, prompt), ids, sizes)
    assert streamed == run(OutputProcessor(tokenizer, params, prompt), ids, [])
    if not stops:
        assert streamed[0] == tokenizer.decode(ids, skip_special_tokens=skip)


@ONCE_PER_SESSION
@given(ids=st.lists(st.integers(0, 258), max_size=30), stops=STOPS, sizes=SPLITS)
def test_stream_equals_whole_text_for_any_tokens(
    byte_tokenizer: Any, ids: list[int], stops: list[str], sizes: list[int]
) -> None:
    params = SamplingParams(stop=tuple(stops))
    whole = run(OutputProcessor(byte_tokenizer, params), ids, [])
    assert run(OutputProcessor(byte_tokenizer, params), ids, sizes) == whole


def test_stop_string_cuts_tokens_after_the_one_that_completed_it(byte_tokenizer: Any) -> None:
    processor = OutputProcessor(byte_tokenizer, SamplingParams(stop=("END",)))
    delta = processor.push(list(b"go END and more"))
    assert (delta.text, len(delta.token_ids), delta.stopped_by) == ("go ", 6, "END")


def test_everything_after_a_stop_string_is_ignored(byte_tokenizer: Any) -> None:
    processor = OutputProcessor(byte_tokenizer, SamplingParams(stop=("x",)))
    processor.push(list(b"x"))
    assert processor.push(list(b"late"), finished=True).text == ""


def test_stop_string_counts_only_after_min_tokens(byte_tokenizer: Any) -> None:
    processor = OutputProcessor(byte_tokenizer, SamplingParams(stop=("x",), min_tokens=2))
    delta = processor.push(list(b"xxaxb"))
    assert (delta.text, delta.stopped_by) == ("xxa", "x")


def test_stop_token_leaves_no_text(byte_tokenizer: Any) -> None:
    params = SamplingParams(stop_token_ids=(ord("."),), skip_special_tokens=False)
    assert OutputProcessor(byte_tokenizer, params).push(list(b"hi."), finished=True).text == "hi"
    params = SamplingParams(stop_token_ids=(ord("."),), include_stop_str_in_output=True)
    assert OutputProcessor(byte_tokenizer, params).push(list(b"hi."), finished=True).text == "hi."


def test_eos_leaves_no_text_unless_it_is_ignored(byte_tokenizer: Any) -> None:
    params = SamplingParams(skip_special_tokens=False)
    assert OutputProcessor(byte_tokenizer, params, (), (257,)).push([*b"hi", 257], finished=True).text == "hi"
    params = SamplingParams(skip_special_tokens=False, ignore_eos=True)
    assert OutputProcessor(byte_tokenizer, params, (), (257,)).push([*b"hi", 257], finished=True).text == "hi</s>"


def test_half_character_at_the_end_can_complete_nothing_but_itself(byte_tokenizer: Any) -> None:
    processor = OutputProcessor(byte_tokenizer, SamplingParams(stop=("x",)))
    assert processor.push([*b"ok", 258], finished=True).text == "ok\ufffd"
