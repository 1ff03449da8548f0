"""Sampling flags of `generate` and `chat`: named like the API's fields."""

import argparse
from typing import Any

import msgspec

from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.errors import StartCause, StartError

_FIELDS: dict[str, tuple[type, str]] = {
    "max_tokens": (int, "most tokens to generate"),
    "temperature": (float, "0 is greedy"),
    "top_p": (float, "sample from the likeliest tokens that make up this probability"),
    "top_k": (int, "sample from this many likeliest tokens; 0: all"),
    "min_p": (float, "leave out tokens below this share of the likeliest one's probability"),
    "repetition_penalty": (float, "above 1 makes tokens that have occurred less likely"),
}


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Without a flag the model's own default holds."""
    group = parser.add_argument_group("Sampling")
    for field, (kind, text) in _FIELDS.items():
        group.add_argument("--" + field.replace("_", "-"), type=kind, metavar=kind.__name__.upper(), help=text)
    group.add_argument("--stop", action="append", metavar="TEXT", help="end at this text; may be repeated")


def sampling_values(parsed: argparse.Namespace) -> dict[str, Any]:
    """The API's fields that were given; --seed, a setting of the engine, makes the answer repeatable too."""
    given = {field: getattr(parsed, field) for field in _FIELDS if getattr(parsed, field) is not None}
    if getattr(parsed, "seed", None) is not None:
        given["seed"] = _whole(parsed.seed)
    return given | ({"stop": tuple(parsed.stop)} if parsed.stop else {})


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise StartError(StartCause.INVALID_SETTINGS, f"--seed must be a whole number, got {text[:100]!r}.") from error


def sampling_params(parsed: argparse.Namespace, defaults: SamplingParams) -> SamplingParams:
    """`defaults` with what was given put over it. Raises SamplingParamsError."""
    return msgspec.structs.replace(defaults, **sampling_values(parsed))
