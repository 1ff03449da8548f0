"""`SamplingParams`: how the tokens of one request are chosen and when it ends.

Frozen and checked when made: a wrong value raises `SamplingParamsError`, which names the field. Defaults and ranges are
those of vLLM's OpenAI server. Knows no tokenizer: strings (`stop`, `bad_words`) are matched or encoded by `text/`.
"""

import math
from collections.abc import Mapping
from typing import Annotated

import msgspec

MIN_TEMPERATURE = 0.01
"""A smaller positive temperature is raised to this, so that logits / temperature stays finite."""

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class SamplingParamsError(ValueError):
    """A sampling field is wrong. `field` is its public name, the message says what to write instead."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one request is sampled. Temperature 0 is greedy."""

    n: int = 1
    best_of: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0  # 0 or -1 = off
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: Int64 | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    max_tokens: int | None = None  # None: as long as the context allows
    min_tokens: int = 0
    logprobs: int | None = None  # top log-probabilities per generated token; 0 = only the chosen one; -1 = whole vocabulary
    prompt_logprobs: int | None = None
    logit_bias: Mapping[int, float] | None = None  # clamped to [-100, 100]
    allowed_token_ids: tuple[int, ...] | None = None
    bad_words: tuple[str, ...] = ()
    bad_words_token_ids: tuple[tuple[int, ...], ...] = ()  # filled by text/ from `bad_words`
    use_beam_search: bool = False
    length_penalty: float = 1.0
    early_stopping: bool = False
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    truncate_prompt_tokens: int | None = None

    def __post_init__(self) -> None:
        for field, ok, message in self._checks():
            if not ok:
                raise SamplingParamsError(field, message)

    def _checks(self) -> list[tuple[str, bool, str]]:
        greedy = self.temperature == 0.0 and not self.use_beam_search
        finite = math.isfinite
        width = self.num_sequences
        return [
            ("n", 1 <= self.n <= 16384, f"n must be between 1 and 16384, got {self.n}."),
            ("n", not greedy or self.n == 1, f"n must be 1 when temperature is 0 (every choice would be the same), got {self.n}."),
            ("best_of", width >= self.n, f"best_of must be at least n ({self.n}), got {self.best_of}."),
            ("best_of", width <= 16384, f"best_of must be at most 16384, got {self.best_of}."),
            ("best_of", not greedy or width == 1, f"best_of must be 1 when temperature is 0, got {self.best_of}."),
            ("temperature", finite(self.temperature) and 0 <= self.temperature <= 2, f"temperature must be between 0 and 2, got {self.temperature}."),
            ("top_p", 0 < self.top_p <= 1, f"top_p must be in (0, 1], got {self.top_p}."),
            ("top_k", self.top_k >= -1, f"top_k must be 0 or -1 (off) or at least 1, got {self.top_k}."),
            ("min_p", 0 <= self.min_p <= 1, f"min_p must be in [0, 1], got {self.min_p}."),
            ("presence_penalty", -2 <= self.presence_penalty <= 2, f"presence_penalty must be in [-2, 2], got {self.presence_penalty}."),
            ("frequency_penalty", -2 <= self.frequency_penalty <= 2, f"frequency_penalty must be in [-2, 2], got {self.frequency_penalty}."),
            ("repetition_penalty", finite(self.repetition_penalty) and self.repetition_penalty > 0, f"repetition_penalty must be above 0, got {self.repetition_penalty}."),
            ("max_tokens", self.max_tokens is None or self.max_tokens >= 1, f"max_tokens must be at least 1, got {self.max_tokens}."),
            ("min_tokens", self.min_tokens >= 0, f"min_tokens must be at least 0, got {self.min_tokens}."),
            ("min_tokens", self.max_tokens is None or self.min_tokens <= self.max_tokens, f"min_tokens ({self.min_tokens}) must be at most max_tokens ({self.max_tokens})."),
            ("logprobs", self.logprobs is None or self.logprobs >= -1, f"logprobs must be at least 0, or -1 for the whole vocabulary, got {self.logprobs}."),
            ("prompt_logprobs", self.prompt_logprobs is None or self.prompt_logprobs >= -1, f"prompt_logprobs must be at least 0, or -1 for the whole vocabulary, got {self.prompt_logprobs}."),
            ("stop", all(self.stop), "stop must not contain an empty string."),
            ("length_penalty", finite(self.length_penalty), f"length_penalty must be a finite number, got {self.length_penalty}."),
            ("allowed_token_ids", self.allowed_token_ids is None or len(self.allowed_token_ids) > 0, "allowed_token_ids must name at least one token."),
            ("truncate_prompt_tokens", self.truncate_prompt_tokens is None or self.truncate_prompt_tokens >= -1 and self.truncate_prompt_tokens != 0, f"truncate_prompt_tokens must be at least 1, or -1 for the longest that fits, got {self.truncate_prompt_tokens}."),
        ]  # fmt: skip

    @property
    def num_sequences(self) -> int:
        """Sequences that the request runs at once: beams, or `best_of` samples of which the best `n` are returned."""
        return self.n if self.best_of is None else self.best_of

    @property
    def effective_temperature(self) -> float:
        """0, or at least `MIN_TEMPERATURE`."""
        return 0.0 if self.temperature == 0 else max(self.temperature, MIN_TEMPERATURE)

    @property
    def needs_history(self) -> bool:
        """Whether earlier tokens change the next distribution."""
        return (
            self.presence_penalty != 0
            or self.frequency_penalty != 0
            or self.repetition_penalty != 1
            or bool(self.bad_words_token_ids)
        )
