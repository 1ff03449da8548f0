"""Log-probabilities of the raw distribution: of chosen tokens, with rank, and of the likeliest ones.

Given logits before any processing, or a copy of them. Natural logarithms, float32.
"""

from collections.abc import Sequence

import torch

from octavo_runtime.engine.messages import TokenLogprobs

ROWS_AT_ONCE = 64
"""Rows of logits in one go: bounds the temporaries."""


def token_logprobs(logits: torch.Tensor, token_ids: Sequence[int], num_top: Sequence[int]) -> list[TokenLogprobs]:
    """Row i of logits [N, vocab], token_ids[i] and num_top[i] (0: none, -1: the whole vocabulary) -> one entry."""
    entries: list[TokenLogprobs] = []
    for begin in range(0, len(token_ids), ROWS_AT_ONCE):
        end = begin + ROWS_AT_ONCE
        entries.extend(_entries(logits[begin:end], token_ids[begin:end], num_top[begin:end]))
    return entries


def likeliest(logits: torch.Tensor, raw: torch.Tensor, count: int) -> tuple[tuple[int, float], ...]:
    """The `count` largest of logits [vocab] that are not banned, with their log-probability under raw [vocab]."""
    values, ids = logits.topk(min(count, logits.shape[0]))
    ids = ids[values > float("-inf")]
    logprobs = raw[ids] - raw.logsumexp(-1)
    order = logprobs.argsort(descending=True, stable=True)
    return tuple(zip(ids[order].tolist(), logprobs[order].tolist(), strict=True))


def _entries(logits: torch.Tensor, token_ids: Sequence[int], num_top: Sequence[int]) -> list[TokenLogprobs]:
    vocab = logits.shape[1]
    counts = [vocab if count < 0 else min(count, vocab) for count in num_top]
    chosen = torch.tensor(token_ids, dtype=torch.int64).unsqueeze(1)
    normalizer = logits.logsumexp(-1, keepdim=True)
    values = logits.gather(1, chosen)
    ranks = ((logits > values).sum(-1) + 1).tolist()
    logprobs = (values - normalizer).squeeze(1).tolist()
    top_values, top_ids = logits.topk(max(counts), dim=-1)
    top_logprobs = top_values - normalizer
    return [
        TokenLogprobs(
            token_id=token_ids[i],
            logprob=logprobs[i],
            rank=ranks[i],
            top=list(zip(top_ids[i, :count].tolist(), top_logprobs[i, :count].tolist(), strict=True)),
        )
        for i, count in enumerate(counts)
    ]
