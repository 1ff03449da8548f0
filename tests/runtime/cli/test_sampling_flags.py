"""Sampling flags go over the model's defaults."""

import pytest

from octavo_runtime.cli.flags import Parser
from octavo_runtime.cli.sampling_flags import add_sampling, sampling_params
from octavo_runtime.engine.sampling_params import SamplingParams, SamplingParamsError


def params(*arguments: str, **defaults: float) -> SamplingParams:
    parser = Parser()
    add_sampling(parser)
    return sampling_params(parser.parse_args(arguments), SamplingParams(**defaults))  # type: ignore[arg-type]


def test_given_flags_replace_defaults_and_others_stay() -> None:
    made = params("--temperature", "0.5", "--stop", "a", "--stop", "b", top_p=0.9, temperature=0.1)
    assert (made.temperature, made.top_p, made.stop) == (0.5, 0.9, ("a", "b"))


def test_wrong_value_names_its_field() -> None:
    with pytest.raises(SamplingParamsError, match="top_p"):
        params("--top-p", "2")
