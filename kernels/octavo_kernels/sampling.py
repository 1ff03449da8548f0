"""Draw of one token from each of several filtered distributions.

In this order: logits / temperature; min_p drops tokens below min_p times the likeliest; top_k keeps the k largest (ties
at the edge all stay); top_p keeps the smallest set of likeliest tokens whose probability reaches top_p, among those
still left. Then one uniform number u per draw picks by inverse CDF in token-id order: the first kept token whose
cumulative probability exceeds u. Temperature 0 takes the largest logit, the lowest id of equals.
NaN counts as minus infinity; a row of nothing else gives token 0.
"""

import torch

from octavo_kernels.backend import SamplingBatch


def sample_reference(logits: torch.Tensor, draws: SamplingBatch) -> torch.Tensor:
    """logits [L, vocab] float32 -> token ids [S] int32. Sorts the vocabulary: plain, not fast."""
    token_ids = [
        draw(logits[row], temperature, top_k, top_p, min_p, uniform)
        for row, temperature, top_k, top_p, min_p, uniform in zip(
            draws.rows.tolist(),
            draws.temperature.tolist(),
            draws.top_k.tolist(),
            draws.top_p.tolist(),
            draws.min_p.tolist(),
            draws.uniform.tolist(),
            strict=True,
        )
    ]
    return torch.tensor(token_ids, dtype=torch.int32)


def draw(logits: torch.Tensor, temperature: float, top_k: int, top_p: float, min_p: float, uniform: float) -> int:
    """One token id from logits [vocab]."""
    logits = logits.nan_to_num(nan=float("-inf"), posinf=torch.finfo(torch.float32).max, neginf=float("-inf"))
    if temperature == 0 or bool(logits.max() == float("-inf")):
        return int(logits.argmax())
    probabilities = filtered_probabilities(logits, temperature, top_k, top_p, min_p)
    return pick(probabilities, uniform)


def filtered_probabilities(
    logits: torch.Tensor, temperature: float, top_k: int, top_p: float, min_p: float
) -> torch.Tensor:
    """Probabilities [vocab] float64 after the filters, zero where a token was dropped; they sum to 1."""
    logits = logits.double() / temperature
    probabilities = (logits - logits.max()).softmax(-1)
    keep = probabilities >= min_p * probabilities.max()
    if 0 < top_k < logits.numel():
        kept = torch.where(keep, probabilities, 0.0)
        keep &= probabilities >= kept.topk(top_k).values[-1]
    if top_p < 1:
        kept = torch.where(keep, probabilities, 0.0)
        kept = kept / kept.sum()
        ordered = kept.sort(descending=True).values
        before = ordered.cumsum(-1) - ordered  # probability of the likelier tokens
        smallest = ordered[before < top_p][-1]
        keep &= kept >= smallest
    kept = torch.where(keep, probabilities, 0.0)
    return kept / kept.sum()


def pick(probabilities: torch.Tensor, uniform: float) -> int:
    """First token whose cumulative probability exceeds `uniform`; never one of probability 0."""
    cumulative = probabilities.cumsum(-1)
    index = int(torch.searchsorted(cumulative, uniform * float(cumulative[-1]), right=True))
    last = int(probabilities.nonzero()[-1])
    return min(index, last)
