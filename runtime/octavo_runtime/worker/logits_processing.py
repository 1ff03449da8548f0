"""What a request's parameters do to its logits before a token is drawn, in place, one row at a time.

Order: logit_bias, allowed tokens, banned tokens, bad words, repetition penalty, presence and frequency penalties.
Source of the penalties: OpenAI's API (presence, frequency), CTRL by Keskar et al. (repetition).
"""

from collections.abc import Iterable, Sequence

import torch

from octavo_runtime.engine.plan import RowSampling
from octavo_runtime.engine.sampling_params import SamplingParams

MAX_LOGIT_BIAS = 100.0


def changes_logits(sampling: RowSampling) -> bool:
    """Whether `process_logits` would change anything."""
    params = sampling.params
    return bool(
        sampling.banned_token_ids or params.logit_bias or params.allowed_token_ids is not None or params.needs_history
    )


def process_logits(logits: torch.Tensor, sampling: RowSampling) -> None:
    """logits [vocab] of the row's last token, changed in place. Ids beyond the vocabulary are ignored."""
    params = sampling.params
    if params.logit_bias:
        _add_bias(logits, params)
    if params.allowed_token_ids is not None:
        allowed = _known(params.allowed_token_ids, logits)
        kept = logits[allowed]
        logits.fill_(float("-inf"))
        logits[allowed] = kept
    _ban(logits, sampling.banned_token_ids)
    if params.bad_words_token_ids:
        history = [*sampling.prompt_token_ids, *sampling.output_token_ids]
        _ban(logits, _ends_of_bad_words(params.bad_words_token_ids, history, len(sampling.prompt_token_ids)))
    if params.repetition_penalty != 1:
        _penalize_repetition(logits, sampling)
    if params.presence_penalty != 0 or params.frequency_penalty != 0:
        counts = torch.bincount(_known(sampling.output_token_ids, logits), minlength=logits.shape[0])
        logits -= params.frequency_penalty * counts + params.presence_penalty * (counts > 0)


def _known(token_ids: Iterable[int], logits: torch.Tensor) -> torch.Tensor:
    """The ids inside the vocabulary, int64."""
    ids = torch.tensor(list(token_ids), dtype=torch.int64)
    return ids[(ids >= 0) & (ids < logits.shape[0])]


def _add_bias(logits: torch.Tensor, params: SamplingParams) -> None:
    for token_id, bias in (params.logit_bias or {}).items():
        if 0 <= token_id < logits.shape[0]:
            logits[token_id] += min(max(bias, -MAX_LOGIT_BIAS), MAX_LOGIT_BIAS)


def _ban(logits: torch.Tensor, token_ids: Sequence[int]) -> None:
    if token_ids:
        logits[_known(token_ids, logits)] = float("-inf")


def _ends_of_bad_words(words: Sequence[Sequence[int]], history: Sequence[int], num_prompt: int) -> list[int]:
    """Last tokens of the bad words whose other tokens were just generated (those may not lie in the prompt)."""
    ends = []
    for word in words:
        prefix = list(word[:-1])
        begin = len(history) - len(prefix)
        if word and begin >= num_prompt and list(history[begin:]) == prefix:
            ends.append(word[-1])
    return ends


def _penalize_repetition(logits: torch.Tensor, sampling: RowSampling) -> None:
    """Every token of prompt and output once (repeats write the same): positive logits shrink, negative ones grow."""
    seen = _known([*sampling.prompt_token_ids, *sampling.output_token_ids], logits)
    penalty = sampling.params.repetition_penalty
    values = logits[seen]
    logits[seen] = torch.where(values > 0, values / penalty, values * penalty)
