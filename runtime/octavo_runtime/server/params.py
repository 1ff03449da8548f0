"""Checked body -> `SamplingParams` and the choices about the reply; fields that are not available yet are refused here.

Every refusal is an InvalidRequestError that names the field. Knows the model's sizes and tokenizer, not the engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octavo_runtime.engine.sampling_params import (
    MAX_BAD_WORD_LENGTH,
    MAX_BAD_WORDS,
    SamplingParams,
    SamplingParamsError,
)
from octavo_runtime.errors import InvalidRequestError
from octavo_runtime.server.config import ServerConfig
from octavo_runtime.server.interfaces import SamplingDefaults, TextLayer
from octavo_runtime.server.schema import ChatBody, CompletionBody, GenerationBody

DEFAULT_COMPLETION_TOKENS = 16
_MAX_SALT = 128
_SALT_FORBIDS = frozenset("@/\\\0")
_UNAVAILABLE = {
    "structured_outputs": "Structured output",
    "guided_json": "Structured output",
    "guided_regex": "Structured output",
    "guided_choice": "Structured output",
    "guided_grammar": "Structured output",
    "guided_json_object": "Structured output",
    "structural_tag": "Structured output",
    "lora_request": "LoRA",
    "logprob_token_ids": "Log-probabilities of chosen token ids",
    "thinking_token_budget": "A budget for thinking",
    "repetition_detection": "Repetition detection",
    "kv_transfer_params": "KV transfer",
    "prompt_embeds": "Prompts as embeddings",
}
_UNAVAILABLE_IN_CHAT = {
    "tools": "Tool calling",
    "functions": "Tool calling",
    "function_call": "Tool calling",
    "documents": "Documents in the prompt",
    "mm_processor_kwargs": "Multimodal input",
    "chat_template": "A chat template in the request",
}


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What the reply carries besides text."""

    stream: bool
    include_usage: bool
    continuous_usage: bool
    echo: bool
    return_token_ids: bool
    tokens_as_ids: bool  # log-probabilities name tokens as "token_id:N"
    prompt_logprobs: bool
    stream_interval: int


def refuse_unavailable(body: GenerationBody) -> None:
    """Raises for features that come with a later release."""
    for field, name in _UNAVAILABLE.items():
        if getattr(body, field) is not None:
            raise InvalidRequestError(f"{name} is not available yet; leave {field} out.", field)
    _check_response_format(body.response_format)
    if isinstance(body, ChatBody):
        for field, name in _UNAVAILABLE_IN_CHAT.items():
            if getattr(body, field) is not None:
                raise InvalidRequestError(f"{name} is not available yet; leave {field} out.", field)
        if body.tool_choice not in (None, "none"):
            raise InvalidRequestError("Tool calling is not available yet; leave tool_choice out.", "tool_choice")
    if isinstance(body, CompletionBody) and body.suffix:
        raise InvalidRequestError("suffix is not supported; put the whole prompt into prompt.", "suffix")


def _check_response_format(value: Any) -> None:
    if value is None:
        return
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind == "text":
        return
    if kind in ("json_object", "json_schema", "structural_tag"):
        raise InvalidRequestError(
            "Structured output is not available yet; leave response_format out or set its type to text.",
            "response_format",
        )
    raise InvalidRequestError('response_format must be an object like {"type": "text"}.', "response_format")


def output_options(body: GenerationBody, config: ServerConfig) -> OutputOptions:
    """Raises InvalidRequestError where fields contradict each other."""
    stream = bool(body.stream)
    options = body.stream_options
    if options is not None and not stream:
        raise InvalidRequestError("stream_options is only for stream: true.", "stream_options")
    if stream and body.use_beam_search:
        raise InvalidRequestError("Beam search cannot stream; set stream to false.", "use_beam_search")
    if stream and body.best_of is not None and body.best_of > (body.n or 1):
        raise InvalidRequestError("best_of above n cannot stream, the best is known at the end only.", "best_of")
    if stream and body.prompt_logprobs is not None:
        raise InvalidRequestError("prompt_logprobs cannot stream; set stream to false.", "prompt_logprobs")
    if body.stream_interval is not None and body.stream_interval < 1:
        raise InvalidRequestError(f"stream_interval must be at least 1, got {body.stream_interval}.", "stream_interval")
    return OutputOptions(
        stream=stream,
        include_usage=bool(options and options.include_usage),
        continuous_usage=bool(options and options.include_usage and options.continuous_usage_stats),
        echo=bool(body.echo),
        return_token_ids=bool(body.return_token_ids),
        tokens_as_ids=bool(body.return_tokens_as_token_ids),
        prompt_logprobs=body.prompt_logprobs is not None,
        stream_interval=body.stream_interval or config.stream_interval,
    )


def check_cache_salt(salt: str | None) -> None:
    """A salt becomes part of a key, so it is short and has no separators."""
    if salt is None:
        return
    if not 1 <= len(salt) <= _MAX_SALT or not _SALT_FORBIDS.isdisjoint(salt):
        raise InvalidRequestError(
            f"cache_salt must have 1 to {_MAX_SALT} characters, none of @ / \\ or NUL.", "cache_salt"
        )


def sampling_params(
    body: GenerationBody, max_tokens: int, config: ServerConfig, text: TextLayer, vocab_size: int
) -> SamplingParams:
    """The engine's view of `body`. `max_tokens` as resolved against the context by the caller."""
    values: dict[str, Any] = {"max_tokens": max_tokens}
    values.update(_plain_fields(body, text.defaults))
    if body.seed is not None and body.seed != -1:
        values["seed"] = body.seed
    values["stop"] = _stop_strings(body.stop, config.max_stop_strings)
    values["stop_token_ids"] = tuple(body.stop_token_ids or ())
    values["logit_bias"] = _logit_bias(body.logit_bias, vocab_size)
    values["allowed_token_ids"] = _allowed_token_ids(body.allowed_token_ids, vocab_size)
    values["logprobs"] = _logprobs(body, config.max_logprobs)
    values["prompt_logprobs"] = _prompt_logprobs(body, values["logprobs"], config.max_logprobs)
    if body.bad_words:
        values["bad_words"] = tuple(body.bad_words)
        values["bad_words_token_ids"] = _bad_words(body.bad_words, text)
    if values.get("top_k", 0) > vocab_size:
        values["top_k"] = 0
    if body.min_tokens is not None and body.min_tokens > max_tokens:
        raise InvalidRequestError(
            f"min_tokens must be at most the tokens that may be generated ({max_tokens}), got {body.min_tokens}.",
            "min_tokens",
        )
    try:
        return SamplingParams(**values)
    except SamplingParamsError as error:
        raise InvalidRequestError(str(error), error.field) from error


_PLAIN = (
    "n", "best_of", "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty",
    "repetition_penalty", "include_stop_str_in_output", "ignore_eos", "min_tokens", "use_beam_search", "length_penalty",
    "early_stopping", "skip_special_tokens", "spaces_between_special_tokens", "truncate_prompt_tokens",
)  # fmt: skip
_DEFAULTED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


def _plain_fields(body: GenerationBody, defaults: SamplingDefaults) -> dict[str, Any]:
    """Fields that pass as they are; one that is not given falls back on the model's own default."""
    values = {field: getattr(body, field) for field in _PLAIN}
    for field in _DEFAULTED:
        if values[field] is None:
            values[field] = getattr(defaults, field)
    return {field: value for field, value in values.items() if value is not None}


def _stop_strings(stop: str | list[str] | None, limit: int) -> tuple[str, ...]:
    if stop is None:
        return ()
    strings = (stop,) if isinstance(stop, str) else tuple(stop)
    if len(strings) > limit:
        raise InvalidRequestError(f"stop takes at most {limit} strings, got {len(strings)}.", "stop")
    return strings


def _logit_bias(bias: dict[str, float] | None, vocab_size: int) -> dict[int, float] | None:
    """Keys are token ids written as strings; values are clamped to +-100."""
    if not bias:
        return None
    checked = {}
    for key, value in bias.items():
        if not (key.isascii() and key.isdigit() and len(key) < 10 and int(key) < vocab_size):
            raise InvalidRequestError(
                f"logit_bias: {key[:32]!r} is not a token id of this model (0 to {vocab_size - 1}).", "logit_bias"
            )
        checked[int(key)] = min(100.0, max(-100.0, value))
    return checked


def _allowed_token_ids(ids: list[int] | None, vocab_size: int) -> tuple[int, ...] | None:
    if ids is None:
        return None
    for token_id in ids:
        if not 0 <= token_id < vocab_size:
            raise InvalidRequestError(
                f"allowed_token_ids: {token_id} is not a token id of this model (0 to {vocab_size - 1}).",
                "allowed_token_ids",
            )
    return tuple(dict.fromkeys(ids))


def _logprobs(body: GenerationBody, limit: int) -> int | None:
    if isinstance(body, CompletionBody):
        _check_logprobs_limit("logprobs", body.logprobs, limit)
        return body.logprobs
    if not isinstance(body, ChatBody):
        return None
    if body.top_logprobs is not None and body.top_logprobs != 0 and not body.logprobs:
        raise InvalidRequestError("top_logprobs needs logprobs: true.", "top_logprobs")
    if not body.logprobs:
        return None
    _check_logprobs_limit("top_logprobs", body.top_logprobs, limit)
    return body.top_logprobs or 0


def _prompt_logprobs(body: GenerationBody, logprobs: int | None, limit: int) -> int | None:
    """Echo with log-probabilities wants those of the prompt as well."""
    _check_logprobs_limit("prompt_logprobs", body.prompt_logprobs, limit)
    if body.prompt_logprobs is None and body.echo and isinstance(body, CompletionBody):
        return logprobs
    return body.prompt_logprobs


def _check_logprobs_limit(field: str, value: int | None, limit: int) -> None:
    if value is None or limit == -1:
        return
    if value == -1 or value > limit:
        raise InvalidRequestError(f"{field} must be between 0 and {limit} on this server, got {value}.", field)


def _bad_words(words: list[str], text: TextLayer) -> tuple[tuple[int, ...], ...]:
    """Each word as it is written at the start of a text and after a space."""
    if len(words) > MAX_BAD_WORDS:
        raise InvalidRequestError(f"bad_words takes at most {MAX_BAD_WORDS} words, got {len(words)}.", "bad_words")
    encoded: dict[tuple[int, ...], None] = {}
    for index, word in enumerate(words):
        if not word.strip():
            raise InvalidRequestError(f"bad_words[{index}] is empty.", f"bad_words[{index}]")
        if len(word) > MAX_BAD_WORD_LENGTH:
            raise InvalidRequestError(
                f"bad_words[{index}] has {len(word)} characters, at most {MAX_BAD_WORD_LENGTH} are taken.",
                f"bad_words[{index}]",
            )
        for form in (word.lstrip(), " " + word.lstrip()):
            ids = tuple(text.tokenizer.encode(form, add_special_tokens=False))
            if ids:
                encoded[ids] = None
    return tuple(encoded)
