"""`Sampler`: logits and the rows' RowSampling -> one RowResult per row.

Rows that want nothing special go straight to the backend's `sample`; log-probabilities, processing of logits, beams and
prompt log-probabilities cost only the rows that ask for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from octavo_kernels.backend import Backend, SamplingBatch
from octavo_runtime.engine.messages import TokenLogprobs
from octavo_runtime.engine.plan import Row, RowResult, RowSampling
from octavo_runtime.worker.inputs import LogitsLayout
from octavo_runtime.worker.logits_processing import LogitsProcessor, changes_logits
from octavo_runtime.worker.logprobs import likeliest, token_logprobs

NOTHING = RowResult()


@dataclass(frozen=True, slots=True)
class _Draws:
    """One entry per draw: the plan row it belongs to, and the columns of a SamplingBatch."""

    owner: list[int]
    rows: list[int]
    params: list[tuple[float, int, float, float]]  # temperature, top_k, top_p, min_p
    uniforms: list[float]

    def batch(self) -> SamplingBatch:
        """The columns as tensors."""
        temperature, top_k, top_p, min_p = zip(*self.params, strict=True)
        return SamplingBatch(
            rows=torch.tensor(self.rows, dtype=torch.int32),
            temperature=torch.tensor(temperature, dtype=torch.float32),
            top_k=torch.tensor(top_k, dtype=torch.int32),
            top_p=torch.tensor(top_p, dtype=torch.float32),
            min_p=torch.tensor(min_p, dtype=torch.float32),
            uniform=torch.tensor(self.uniforms, dtype=torch.float32),
        )


class Sampler:
    """Draws tokens with one backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._processor = LogitsProcessor()

    def sample(self, logits: torch.Tensor, rows: Sequence[Row], layout: LogitsLayout) -> tuple[RowResult, ...]:
        """logits [L, vocab] float32, laid out as `layout` says; rows of it are changed in place."""
        draws = _collect(rows, layout)
        special = [i for i, row in enumerate(rows) if row.prompt_targets or _is_special(row.sampling)]
        extras = _Extras(logits, rows, layout, special)
        samplings = ((i, rows[i].sampling) for i in special)
        self._processor.process(
            (logits[layout.sampled[i]], sampling)
            for i, sampling in samplings
            if sampling is not None and changes_logits(sampling)
        )
        tokens: list[list[int]] = [[] for _ in rows]
        if draws.owner:
            drawn: list[int] = self._backend.sample(logits, draws.batch()).tolist()
            for owner, token in zip(draws.owner, drawn, strict=True):
                tokens[owner].append(token)
        results = [RowResult(token_ids=tuple(ids)) if ids else NOTHING for ids in tokens]
        for i in special:
            results[i] = extras.complete(i, tokens[i], logits)
        return tuple(results)


def _is_special(sampling: RowSampling | None) -> bool:
    """Whether a row needs more than the backend's draw."""
    return sampling is not None and (
        sampling.num_logprobs is not None or sampling.num_beam_candidates > 0 or changes_logits(sampling)
    )


def _collect(rows: Sequence[Row], layout: LogitsLayout) -> _Draws:
    draws = _Draws([], [], [], [])
    for i, row in enumerate(rows):
        sampling = row.sampling
        if sampling is None or sampling.num_beam_candidates > 0:
            continue
        params = sampling.params
        filters = (params.effective_temperature, max(params.top_k, 0), params.top_p, params.min_p)
        for uniform in sampling.uniforms:
            draws.owner.append(i)
            draws.rows.append(layout.sampled[i])
            draws.params.append(filters)
            draws.uniforms.append(uniform)
    return draws


class _Extras:
    """What special rows get besides tokens. Made before logits are processed: it speaks of the raw distribution."""

    def __init__(self, logits: torch.Tensor, rows: Sequence[Row], layout: LogitsLayout, special: Sequence[int]) -> None:
        self._rows = rows
        self._layout = layout
        self._prompt = {i: _prompt_logprobs(logits, rows[i], layout.first_target[i]) for i in special}
        wanting = [i for i in special if _wants_raw(rows[i].sampling)]
        self._raw_row = {i: position for position, i in enumerate(wanting)}
        self._raw = logits[[layout.sampled[i] for i in wanting]]  # a copy, [rows that want it, vocab]

    def complete(self, i: int, tokens: list[int], logits: torch.Tensor) -> RowResult:
        """The result of row i; `logits` are the processed ones."""
        sampling = self._rows[i].sampling
        if i not in self._raw_row or sampling is None:
            return RowResult(token_ids=tuple(tokens), prompt_logprobs=self._prompt[i])
        raw = self._raw[self._raw_row[i]]
        if sampling.num_beam_candidates > 0:
            candidates = likeliest(logits[self._layout.sampled[i]], raw, sampling.num_beam_candidates)
            return RowResult(candidates=candidates, prompt_logprobs=self._prompt[i])
        num_top = [sampling.num_logprobs or 0] * len(tokens)
        logprobs = token_logprobs(raw.expand(len(tokens), -1), tokens, num_top)
        return RowResult(token_ids=tuple(tokens), logprobs=tuple(logprobs), prompt_logprobs=self._prompt[i])


def _wants_raw(sampling: RowSampling | None) -> bool:
    return sampling is not None and (sampling.num_logprobs is not None or sampling.num_beam_candidates > 0)


def _prompt_logprobs(logits: torch.Tensor, row: Row, first: int) -> tuple[TokenLogprobs, ...] | None:
    """One entry per prompt target of the row."""
    if not row.prompt_targets:
        return None
    targets = list(row.prompt_targets)
    return tuple(
        token_logprobs(logits[first : first + len(targets)], targets, [row.num_prompt_logprobs] * len(targets))
    )
