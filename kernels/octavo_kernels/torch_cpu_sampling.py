"""Sampling of the `torch_cpu` backend: the filters look at the likeliest tokens only, so nothing sorts the vocabulary.

Same result as `sample_reference`; a draw whose filters reach beyond the candidates is handed to it.
"""

import torch

from octavo_kernels.backend import SamplingBatch
from octavo_kernels.sampling import draw, pick

NUM_CANDIDATES = 256
"""top_p and min_p rarely keep more tokens than this."""


def sample_torch(logits: torch.Tensor, draws: SamplingBatch) -> torch.Tensor:
    """logits [L, vocab] float32 -> token ids [S] int32."""
    tokens = torch.empty(draws.rows.shape[0], dtype=torch.int32)
    greedy = draws.temperature == 0
    if bool(greedy.any()):
        rows = logits.index_select(0, draws.rows[greedy])
        tokens[greedy] = rows.nan_to_num_(nan=float("-inf")).argmax(-1).int()
    for i in (~greedy).nonzero().flatten().tolist():
        tokens[i] = _draw(
            logits[int(draws.rows[i])],
            float(draws.temperature[i]),
            int(draws.top_k[i]),
            float(draws.top_p[i]),
            float(draws.min_p[i]),
            float(draws.uniform[i]),
        )
    return tokens


def _draw(logits: torch.Tensor, temperature: float, top_k: int, top_p: float, min_p: float, uniform: float) -> int:
    """One token id from logits [vocab]."""
    num_candidates = max(top_k, NUM_CANDIDATES) + 1
    unfiltered = top_k <= 0 and top_p >= 1 and min_p <= 0
    if not unfiltered and num_candidates < logits.numel():
        logits = logits.nan_to_num(nan=float("-inf"), posinf=torch.finfo(torch.float32).max, neginf=float("-inf"))
        kept = _filter(logits, num_candidates, temperature, top_k, top_p, min_p)
        if kept is not None:
            weights, ids = kept
            order = ids.argsort()
            return int(ids[order[pick(weights[order], uniform)]])
    return draw(logits, temperature, top_k, top_p, min_p, uniform)


def _filter(
    logits: torch.Tensor, num_candidates: int, temperature: float, top_k: int, top_p: float, min_p: float
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """(weights, ids) of the tokens that stay; None when the edge of a filter is not among the candidates."""
    values, ids = logits.topk(num_candidates)
    if bool(values[0] == float("-inf")):
        return None
    weights = ((values.double() - values[0]) / temperature).exp()  # [candidates], 1 for the likeliest, descending
    kept = weights >= min_p
    if top_k > 0:
        kept &= weights >= weights[top_k - 1]
    if not kept[-1]:
        total = weights[kept].sum()
    elif top_k > 0 or min_p > 0:
        return None
    else:
        total = ((logits - values[0]) / temperature).exp().sum(dtype=torch.float64)
    if top_p < 1:
        kept &= weights.cumsum(-1) - weights < top_p * total
        kept = weights >= weights[kept][-1]
    return None if kept[-1] else (weights[kept], ids[kept])
