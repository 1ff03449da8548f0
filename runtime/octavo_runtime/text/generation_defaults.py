"""What a model's files say about generating: which tokens end a text, and sampling values for requests that name none.

Read once at start from a `ModelSource`; the server puts `sampling` under the fields that a request sets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octavo_runtime.hub import ModelKind, ModelSource, read_json

_SAMPLING_FIELDS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
    "max_new_tokens": "max_tokens",
}
_GGUF_END_TOKENS = ("eos_token_id", "eot_token_id", "eom_token_id")


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """`sampling` has SamplingParams field names; empty when the model says nothing or is not asked."""

    eos_token_ids: tuple[int, ...]
    sampling: Mapping[str, Any]


def generation_defaults(source: ModelSource, tokenizer_eos: int | None, choice: str = "auto") -> GenerationDefaults:
    """`choice` (--generation-config): `auto` reads the model's file, `vllm` leaves sampling at the API's defaults,
    anything else is a folder with a generation_config.json. `tokenizer_eos` is the tokenizer's own end token.

    Raises StartError when that folder's file is missing or broken.
    """
    file = source.generation_config
    if choice not in ("auto", "vllm"):
        file = read_json(Path(choice) / "generation_config.json")
    sampling = {} if choice == "vllm" else _sampling(file)
    return GenerationDefaults(_end_tokens(source, file, tokenizer_eos), sampling)


def _sampling(file: Mapping[str, Any]) -> dict[str, Any]:
    return {ours: file[theirs] for theirs, ours in _SAMPLING_FIELDS.items() if file.get(theirs) is not None}


def _end_tokens(source: ModelSource, file: Mapping[str, Any], tokenizer_eos: int | None) -> tuple[int, ...]:
    if source.kind is ModelKind.GGUF:
        found = [source.config.get(f"tokenizer.ggml.{name}") for name in _GGUF_END_TOKENS]
    else:
        named = file.get("eos_token_id")
        named = source.config.get("eos_token_id") if named is None else named
        found = named if isinstance(named, list) else [named]
    return tuple(dict.fromkeys(token for token in [*found, tokenizer_eos] if isinstance(token, int)))
