"""`SamplingParams`: how the tokens of one request are chosen and when it ends.

Frozen and checked when made: a wrong value raises `SamplingParamsError`, which names the field. Defaults and ranges are
those of vLLM's OpenAI server. Knows no tokenizer: strings (`stop`, `bad_words`) are matched or encoded by `text/`.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec

MAX_SEQUENCES = 16384
"""The most sequences of one request."""

MAX_BEAMS = 128
"""The most beams: a step ranks up to MAX_BEAMS * (MAX_BEAMS + MAX_STOP_TOKEN_IDS) candidates, in some 10 ms."""

MAX_LENGTH_PENALTY = 10.0
"""Beyond it length ** length_penalty says nothing any more, and leaves the range of a float for long outputs."""

# What a request may name; every step of its sequences looks at all of it.
MAX_BIASES = 1024
MAX_STOP_TOKEN_IDS = 128
MAX_BAD_WORDS = 256
MAX_BAD_WORD_LENGTH = 128  # characters

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
    logprobs: int | None = (
        None  # top log-probabilities per generated token; 0 = only the chosen one; -1 = whole vocabulary
    )
    prompt_logprobs: int | None = None
    logit_bias: Mapping[int, float] | None = None  # clamped to [-100, 100]
    allowed_token_ids: tuple[int, ...] | None = None
    bad_words: tuple[str, ...] = ()
    bad_words_token_ids: tuple[tuple[int, ...], ...] = ()  # filled by text/ from `bad_words`
    use_beam_search: bool = False
    length_penalty: float = 1.0
    early_stopping: bool = False
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True  # without effect, for vLLM's sake: no spaces are put there
    truncate_prompt_tokens: int | None = None

    def __post_init__(self) -> None:
        try:
            requirements = self._requirements()
        except TypeError as error:
            raise self._wrong_type() from error
        for field, ok, requirement in requirements:
            if not ok:
                raise SamplingParamsError(field, f"{field} must {requirement}, got {str(getattr(self, field))[:100]}.")

    def _wrong_type(self) -> SamplingParamsError:
        """Names the first field whose value is not of its type."""
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            try:
                msgspec.convert(value, field.type)
            except msgspec.ValidationError as error:
                reason = str(error).replace("`", "").lower()
                return SamplingParamsError(field.name, f"{field.name} is of the wrong type: {reason}.")
        return SamplingParamsError("", "A field is of the wrong type.")

    def _requirements(self) -> list[tuple[str, bool, str]]:
        """(field, whether it holds, what the field must do)."""
        greedy = self.temperature == 0.0 and not self.use_beam_search
        width, truncate = self.num_sequences, self.truncate_prompt_tokens
        width_field = "n" if self.best_of is None else "best_of"
        return [
            ("n", 1 <= self.n <= MAX_SEQUENCES, f"be between 1 and {MAX_SEQUENCES}"),
            ("n", not greedy or self.n == 1, "be 1 when temperature is 0 (every choice would be the same)"),
            ("best_of", self.n <= width <= MAX_SEQUENCES, f"be between n ({self.n}) and {MAX_SEQUENCES}"),
            ("best_of", not greedy or width == 1, "be 1 when temperature is 0"),
            (width_field, not self.use_beam_search or width <= MAX_BEAMS, f"be at most {MAX_BEAMS} with beam search"),
            ("temperature", 0 <= self.temperature <= 2, "be between 0 and 2"),
            ("top_p", 0 < self.top_p <= 1, "be above 0 and at most 1"),
            ("top_k", -1 <= self.top_k < 2**31, "be between 1 and 2**31 - 1, or 0 or -1 for off"),
            ("min_p", 0 <= self.min_p <= 1, "be between 0 and 1"),
            ("presence_penalty", -2 <= self.presence_penalty <= 2, "be between -2 and 2"),
            ("frequency_penalty", -2 <= self.frequency_penalty <= 2, "be between -2 and 2"),
            ("repetition_penalty", 0.01 <= self.repetition_penalty <= 100, "be between 0.01 and 100"),
            ("max_tokens", self.max_tokens is None or self.max_tokens >= 1, "be at least 1"),
            ("min_tokens", self.min_tokens >= 0, "be at least 0"),
            (
                "min_tokens",
                self.max_tokens is None or self.min_tokens <= self.max_tokens,
                f"be at most max_tokens ({self.max_tokens})",
            ),
            ("logprobs", not self.use_beam_search or self.logprobs is None, "be left out with beams, which carry none"),
            ("logprobs", self.logprobs is None or self.logprobs >= -1, "be at least 0, or -1 for all"),
            (
                "prompt_logprobs",
                self.prompt_logprobs is None or self.prompt_logprobs >= -1,
                "be at least 0, or -1 for all",
            ),
            ("stop", all(self.stop), "hold no empty string"),
            (
                "length_penalty",
                -MAX_LENGTH_PENALTY <= self.length_penalty <= MAX_LENGTH_PENALTY,
                f"be between {-MAX_LENGTH_PENALTY:g} and {MAX_LENGTH_PENALTY:g}",
            ),
            ("allowed_token_ids", self.allowed_token_ids != (), "name at least one token"),
            ("logit_bias", len(self.logit_bias or ()) <= MAX_BIASES, f"have at most {MAX_BIASES} entries"),
            ("stop_token_ids", len(self.stop_token_ids) <= MAX_STOP_TOKEN_IDS, f"name at most {MAX_STOP_TOKEN_IDS}"),
            ("bad_words", len(self.bad_words) <= MAX_BAD_WORDS, f"have at most {MAX_BAD_WORDS} words"),
            (
                "bad_words",
                all(len(word) <= MAX_BAD_WORD_LENGTH for word in self.bad_words),
                f"hold words of at most {MAX_BAD_WORD_LENGTH} characters",
            ),
            (
                "truncate_prompt_tokens",
                truncate is None or truncate == -1 or truncate >= 1,
                "be at least 1, or -1 for the longest that fits",
            ),
        ]

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
