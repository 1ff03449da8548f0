"""`LogitsProcessor`: what a request's parameters do to its logits before a token is drawn, in place, row by row.

Order: logit_bias, allowed tokens, banned tokens, bad words, repetition penalty, presence and frequency penalties.
Source of the penalties: OpenAI's API (presence, frequency), CTRL by Keskar et al. (repetition).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from octavo_runtime.engine.plan import RowSampling
from octavo_runtime.engine.sampling_params import SamplingParams

MAX_LOGIT_BIAS = 100.0


def changes_logits(sampling: RowSampling) -> bool:
    """Whether `LogitsProcessor` would change anything."""
    params = sampling.params
    return bool(
        sampling.banned_token_ids or params.logit_bias or params.allowed_token_ids is not None or params.needs_history
    )


@dataclass(frozen=True, slots=True)
class _NamedTokens:
    """Tokens that a request names, as tensors. Holds `params`, so that no other ones get their id()."""

    params: SamplingParams
    bias_ids: torch.Tensor  # int64 [biases]
    biases: torch.Tensor  # float32 [biases]
    allowed: torch.Tensor | None  # int64 [allowed tokens]


class LogitsProcessor:
    """Remembers the tensors of the requests that were in the last step: a request may name the whole vocabulary."""

    def __init__(self) -> None:
        self._named: dict[int, _NamedTokens] = {}  # by id() of their params

    def process(self, rows: Iterable[tuple[torch.Tensor, RowSampling]]) -> None:
        """All rows of a step that `changes_logits` speaks of, each with the logits [vocab] of its last token.

        Ids beyond the vocabulary are ignored.
        """
        last, self._named = self._named, {}
        for logits, sampling in rows:
            key = id(sampling.params)
            named = self._named.get(key) or last.get(key) or _named_tokens(sampling.params, logits.shape[0])
            self._named[key] = named
            _process(logits, sampling, named)


def _named_tokens(params: SamplingParams, vocab_size: int) -> _NamedTokens:
    bias = {i: value for i, value in (params.logit_bias or {}).items() if 0 <= i < vocab_size}
    allowed = params.allowed_token_ids
    return _NamedTokens(
        params=params,
        bias_ids=torch.tensor(list(bias), dtype=torch.int64),
        biases=torch.tensor(list(bias.values()), dtype=torch.float32).clamp(-MAX_LOGIT_BIAS, MAX_LOGIT_BIAS),
        allowed=None if allowed is None else _known(allowed, vocab_size),
    )


def _process(logits: torch.Tensor, sampling: RowSampling, named: _NamedTokens) -> None:
    params, vocab_size = sampling.params, logits.shape[0]
    logits.index_add_(0, named.bias_ids, named.biases)
    if named.allowed is not None:
        kept = logits[named.allowed]
        logits.fill_(float("-inf"))
        logits[named.allowed] = kept
    _ban(logits, sampling.banned_token_ids)
    _ban(logits, _ends_of_bad_words(params.bad_words_token_ids, sampling.output_token_ids))
    if params.repetition_penalty != 1:
        _penalize_repetition(logits, sampling)
    if params.presence_penalty != 0 or params.frequency_penalty != 0:
        counts = torch.bincount(_known(sampling.output_token_ids, vocab_size), minlength=vocab_size)
        logits -= params.frequency_penalty * counts + params.presence_penalty * (counts > 0)


def _known(token_ids: Iterable[int], vocab_size: int) -> torch.Tensor:
    """The ids inside the vocabulary, int64."""
    ids = torch.tensor(list(token_ids), dtype=torch.int64)
    return ids[(ids >= 0) & (ids < vocab_size)]


def _ban(logits: torch.Tensor, token_ids: Sequence[int]) -> None:
    if token_ids:
        logits[_known(token_ids, logits.shape[0])] = float("-inf")


def _ends_of_bad_words(words: Sequence[tuple[int, ...]], output: Sequence[int]) -> list[int]:
    """Last tokens of the bad words whose other tokens were just generated."""
    ends = []
    for word in words:
        begin = len(output) - len(word) + 1
        if word and begin >= 0 and tuple(output[begin:]) == word[:-1]:
            ends.append(word[-1])
    return ends


def _penalize_repetition(logits: torch.Tensor, sampling: RowSampling) -> None:
    """Every token of prompt and output once (repeats write the same): positive logits shrink, negative ones grow."""
    seen = _known([*sampling.prompt_token_ids, *sampling.output_token_ids], logits.shape[0])
    penalty = sampling.params.repetition_penalty
    values = logits[seen]
    logits[seen] = torch.where(values > 0, values / penalty, values * penalty)
