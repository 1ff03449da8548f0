from typing import Any

import pytest

from octavo_runtime.engine.sampling_params import (
    MAX_BAD_WORD_LENGTH,
    MAX_BAD_WORDS,
    MAX_BEAMS,
    MAX_BIASES,
    MAX_STOP_TOKEN_IDS,
    SamplingParams,
    SamplingParamsError,
)

BEAMS = {"use_beam_search": True}


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("length_penalty", {"length_penalty": 2000.0}),
        ("length_penalty", {"length_penalty": -10.5}),
        ("length_penalty", {"length_penalty": float("nan")}),
        ("length_penalty", {"length_penalty": float("-inf")}),
        ("repetition_penalty", {"repetition_penalty": 1e300}),
        ("repetition_penalty", {"repetition_penalty": 1e-300}),
        ("top_k", {"top_k": 2**31}),
        ("n", {"n": MAX_BEAMS + 1, **BEAMS}),
        ("best_of", {"best_of": MAX_BEAMS + 1, **BEAMS}),
        ("logit_bias", {"logit_bias": dict.fromkeys(range(MAX_BIASES + 1), 1.0)}),
        ("stop_token_ids", {"stop_token_ids": (1,) * (MAX_STOP_TOKEN_IDS + 1)}),
        ("bad_words", {"bad_words": ("x",) * (MAX_BAD_WORDS + 1)}),
        ("bad_words", {"bad_words": ("x" * (MAX_BAD_WORD_LENGTH + 1),)}),
    ],
)
def test_a_value_without_bound_is_refused_by_name(field: str, values: dict[str, Any]) -> None:
    with pytest.raises(SamplingParamsError) as caught:
        SamplingParams(**values)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field} must")
    assert len(str(caught.value)) < 250


def test_the_largest_allowed_values_are_allowed() -> None:
    SamplingParams(n=MAX_BEAMS, length_penalty=10.0, **BEAMS)
    SamplingParams(n=MAX_BEAMS + 1)
    SamplingParams(
        length_penalty=-10.0,
        top_k=2**31 - 1,
        logit_bias=dict.fromkeys(range(MAX_BIASES), 1.0),
        stop_token_ids=(1,) * MAX_STOP_TOKEN_IDS,
        bad_words=("x" * MAX_BAD_WORD_LENGTH,) * MAX_BAD_WORDS,
    )


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"stop": 5}, "stop"),
        ({"temperature": "hot"}, "temperature"),
        ({"stop_token_ids": 7}, "stop_token_ids"),
        ({"bad_words": (1,)}, "bad_words"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(values: dict[str, Any], field: str) -> None:
    with pytest.raises(SamplingParamsError, match=f"^{field} is of the wrong type") as caught:
        SamplingParams(**values)
    assert caught.value.field == field
