"""`StepDraft` -> `StepPlan`: which tokens each row computes and what is drawn from its last one.

Rows hold the sequences' own lists where these are exact (tokens so far, block table), because copying them every step
would cost more than all of scheduling; they are valid until the step is committed.
"""

from dataclasses import dataclass

from octavo_runtime.engine.draft import StepDraft
from octavo_runtime.engine.plan import Row, RowSampling, StepPlan
from octavo_runtime.engine.seeds import next_uniform, uniform
from octavo_runtime.engine.sequence import Sequence, SequenceGroup


@dataclass(frozen=True, slots=True)
class ScheduledStep:
    """A plan, and whose rows it has: `sequences[i]` computes `plan.rows[i]`."""

    plan: StepPlan
    sequences: tuple[tuple[SequenceGroup, Sequence], ...]


def make_step(draft: StepDraft, block_size: int) -> ScheduledStep:
    """Freeze the draft."""
    rows: list[Row] = []
    sequences: list[tuple[SequenceGroup, Sequence]] = []
    for group, work in draft.work.items():
        for sequence, num_tokens in work:
            rows.append(_row(group, sequence, num_tokens, block_size))
            sequences.append((group, sequence))
    plan = StepPlan(
        rows=tuple(rows),
        swap_out=tuple(draft.swap_out),
        swap_in=tuple(draft.swap_in),
        copy=tuple((copy.source, copy.destination) for copies in draft.copies.values() for copy in copies),
    )
    return ScheduledStep(plan, tuple(sequences))


def _row(group: SequenceGroup, sequence: Sequence, num_tokens: int, block_size: int) -> Row:
    token_ids, start = sequence.token_ids, sequence.num_computed
    end = start + num_tokens
    table = sequence.block_table
    used = -(-end // block_size)
    if used != len(table):  # a chunk of a prompt whose blocks were all allocated at admission
        table = table[:used]
    sampling = _sampling(group, sequence) if end == len(token_ids) else None
    if group.prompt_logprobs is None:
        return Row(sequence.sequence_id, token_ids[start:end], start, table, sampling)
    return Row(
        sequence_id=sequence.sequence_id,
        token_ids=token_ids[start:end],
        start=start,
        block_table=table,
        sampling=sampling,
        prompt_targets=group.prompt_token_ids[start + 1 : end + 1],
        num_prompt_logprobs=group.params.prompt_logprobs or 0,
    )


def _sampling(group: SequenceGroup, sequence: Sequence) -> RowSampling:
    if sequence.constant_sampling is not None:
        return sequence.constant_sampling
    banned = group.banned_token_ids if len(sequence.output_token_ids) < group.stop.min_tokens else ()
    greedy = group.params.temperature == 0
    sampling = RowSampling(
        group.params,
        _uniforms(group, sequence),
        group.prompt_token_ids,
        sequence.output_token_ids,
        banned,
        group.num_logprobs,
        0 if group.beams is None else group.beams.num_candidates,
    )
    if not banned and (greedy or group.beams is not None):
        sequence.constant_sampling = sampling
    return sampling


def _uniforms(group: SequenceGroup, sequence: Sequence) -> tuple[float, ...]:
    if group.beams is not None:
        return ()
    if group.params.temperature == 0:
        return (0.0,)
    if not group.forked:  # the first token of every sequence, from one row
        return tuple(uniform(group.seed, index, 0) for index in range(group.num_seats))
    return (next_uniform(group.seed, sequence),)
