"""`Committer`: takes a step's result in. Appends tokens, forks and ends sequences, and collects what leaves the engine.

Everything that happens to a request's tokens after they were sampled is here; the scheduler only sees the new lengths.
"""

import logging

from octavo_runtime.engine.beam import Beam, Child, Hypothesis
from octavo_runtime.engine.block_manager import BlockManager
from octavo_runtime.engine.messages import (
    FinishReason,
    PromptLogprobs,
    RequestFinished,
    SequenceOutput,
    TokenLogprobs,
)
from octavo_runtime.engine.plan import Row, RowResult, StepResult
from octavo_runtime.engine.rows import ScheduledStep
from octavo_runtime.engine.scheduler import Scheduler
from octavo_runtime.engine.sequence import Sequence, SequenceGroup

logger = logging.getLogger(__name__)


class Committer:
    """Applies results to groups and gathers outputs until `LLMEngine.step` takes them."""

    def __init__(self, scheduler: Scheduler, blocks: BlockManager) -> None:
        self.sequences: list[SequenceOutput] = []
        self.prompts: list[PromptLogprobs] = []
        self.finished: list[RequestFinished] = []
        self.groups: dict[str, SequenceGroup] = {}  # every group that has not ended, by request id
        self.num_prompt_tokens = 0
        self.num_generation_tokens = 0
        self._scheduler = scheduler
        self._blocks = blocks
        self._num_sequences = 0

    def next_sequence_id(self) -> int:
        self._num_sequences += 1
        return self._num_sequences

    def commit(self, step: ScheduledStep, result: StepResult, now: float) -> None:
        """Apply one result per row; `now` is when the tokens were there."""
        settling: dict[SequenceGroup, None] = {}  # groups that may become ready to decode
        beams: dict[SequenceGroup, list[tuple[Sequence, RowResult]]] = {}
        for (group, sequence), row, row_result in zip(step.sequences, step.plan.rows, result.rows, strict=True):
            sequence.num_computed += len(row.token_ids)
            if sequence.num_computed >= sequence.register_at:
                self._blocks.register(group, sequence)
            if not group.decoding:
                settling[group] = None
                if group.prompt_logprobs is not None:
                    self._take_prompt_logprobs(group, row, row_result)
            if row.sampling is None:
                continue
            if group.first_token_time is None:
                self._start_output(group, now)
            group.last_token_time = now
            if group.beams is not None:
                beams.setdefault(group, []).append((sequence, row_result))
            elif group.forked:
                self._append(group, sequence, row_result, 0)
            else:
                self._first_tokens(group, sequence, row_result)
        for group, rows in beams.items():
            self._advance_beams(group, rows)
        for group in settling:
            self._settle(group)

    def end_sequence(self, group: SequenceGroup, sequence: Sequence, reason: FinishReason) -> None:
        """Take `sequence` out of its group; the last one ends the request."""
        if group.first_reason is None or sequence.index < group.first_reason_index:
            group.first_reason, group.first_reason_index = reason, sequence.index
        if len(group.live) == 1:
            self.end_group(group, group.first_reason)
            return
        if sequence is group.leader and not group.forked:  # the next one goes on with the prompt that both need
            heir = group.live[1]
            heir.block_table, sequence.block_table = sequence.block_table, []
            heir.host_table, sequence.host_table = sequence.host_table, []
            heir.num_computed, heir.num_registered = sequence.num_computed, sequence.num_registered
            heir.register_at = sequence.register_at
        self._blocks.free(sequence)
        group.live.remove(sequence)
        group.num_seats = len(group.live)

    def end_group(self, group: SequenceGroup, reason: FinishReason, error: str | None = None) -> None:
        """The request's one terminal event; all that it holds is free afterwards."""
        self._scheduler.remove(group)
        del self.groups[group.request_id]
        scheduled, first, last = group.first_scheduled_time, group.first_token_time, group.last_token_time
        self.finished.append(
            RequestFinished(
                request_id=group.request_id,
                reason=reason,
                error=error,
                num_prompt_tokens=group.num_prompt,
                num_cached_tokens=group.num_cached_tokens or 0,
                num_generation_tokens=group.num_generated,
                num_preemptions=group.num_preemptions,
                queue_time=0.0 if scheduled is None else scheduled - group.arrival_time,
                prefill_time=0.0 if first is None or scheduled is None else first - scheduled,
                decode_time=0.0 if first is None or last is None else last - first,
            )
        )

    # Sampled tokens

    def _start_output(self, group: SequenceGroup, now: float) -> None:
        group.first_token_time = now
        self.num_prompt_tokens += group.num_prompt
        if group.prompt_logprobs is not None:
            self.prompts.append(PromptLogprobs(request_id=group.request_id, logprobs=group.prompt_logprobs))
            group.prompt_logprobs = None

    def _append(self, group: SequenceGroup, sequence: Sequence, result: RowResult, position: int) -> None:
        """Append the row's drawn token number `position`, tell, and end the sequence if it is its last."""
        token_id = result.token_ids[position]
        sequence.append(token_id)
        group.num_generated += 1
        self.num_generation_tokens += 1
        logprobs: list[TokenLogprobs] | None = None
        if result.logprobs is not None:
            entry = result.logprobs[position]
            sequence.cumulative_logprob += entry.logprob
            if group.params.logprobs is not None:
                logprobs = [entry]
        reason, stop_token_id = _ending(group, sequence, token_id)
        self.sequences.append(
            SequenceOutput(
                request_id=group.request_id,
                index=sequence.index,
                token_ids=[token_id],
                logprobs=logprobs,
                finish_reason=reason,
                stop_token_id=stop_token_id,
                cumulative_logprob=sequence.cumulative_logprob,
            )
        )
        if reason is not None:
            self.end_sequence(group, sequence, reason)

    def _first_tokens(self, group: SequenceGroup, leader: Sequence, result: RowResult) -> None:
        """The first token of every sequence of the group comes from the leader's row."""
        for index in range(1, group.num_seats):
            self._fork(group, leader, index)
        group.forked = True
        for position, sequence in enumerate(group.live.copy()):
            self._append(group, sequence, result, position)

    def _fork(self, group: SequenceGroup, parent: Sequence, index: int) -> Sequence:
        child = parent.copy(self.next_sequence_id(), index)
        self._blocks.fork(parent, child)
        group.live.append(child)
        return child

    def _settle(self, group: SequenceGroup) -> None:
        """After a prompt chunk: share a recomputed prompt with siblings; note when the group starts to decode."""
        if not group.forked and not group.never_sampled and group.leader.num_computed == group.num_prompt:
            for sibling in group.live[1:]:
                self._blocks.fork(group.leader, sibling)
            group.forked = True
        if group.forked:
            group.decoding = all(sequence.num_pending == 1 for sequence in group.live)

    def _take_prompt_logprobs(self, group: SequenceGroup, row: Row, result: RowResult) -> None:
        if row.prompt_targets and group.prompt_logprobs is not None:
            group.prompt_logprobs.extend(result.prompt_logprobs or ())

    # Beams

    def _advance_beams(self, group: SequenceGroup, rows: list[tuple[Sequence, RowResult]]) -> None:
        search = group.beams
        if search is None:
            return
        parents = [sequence for sequence, _ in rows]
        beams = [Beam(seq.cumulative_logprob, seq.output_token_ids, result.candidates) for seq, result in rows]
        num_output = len(parents[0].output_token_ids)
        banned = frozenset(group.banned_token_ids if num_output < group.stop.min_tokens else ())
        try:
            children = search.advance(beams, banned, at_limit=num_output + 1 >= group.stop.max_tokens)
        except ArithmeticError:  # the only arithmetic with a request's own numbers: it must not end the others
            logger.exception("the beams of %s cannot be scored", group.request_id)
            self.end_group(group, FinishReason.ERROR, "The beams cannot be scored; bring length_penalty nearer to 1.")
            return
        if children:
            self._replace_beams(group, parents, children)
        else:
            self._finish_beams(group, search.best(group.params.n))

    def _replace_beams(self, group: SequenceGroup, parents: list[Sequence], children: list[Child]) -> None:
        """A parent's first child goes on in its place, further ones fork, parents without children are freed."""
        group.live = []
        unclaimed = dict.fromkeys(range(len(parents)))
        heirs: list[tuple[Sequence, Child]] = []
        for child in children:
            parent = parents[child.parent]
            if child.parent in unclaimed:
                del unclaimed[child.parent]
                group.live.append(parent)
                heirs.append((parent, child))
            else:
                heirs.append((self._fork(group, parent, parent.index), child))
        for number in unclaimed:
            self._blocks.free(parents[number])
        for index, (sequence, child) in enumerate(heirs):
            sequence.index = index
            sequence.append(child.token_id)
            sequence.cumulative_logprob = child.cumulative_logprob
        group.forked = True
        group.num_seats = len(group.live)

    def _finish_beams(self, group: SequenceGroup, best: list[Hypothesis]) -> None:
        if not best:
            self.end_group(
                group, FinishReason.ERROR, "Every token was forbidden; relax allowed_token_ids or logit_bias."
            )
            return
        for index, hypothesis in enumerate(best):
            last = hypothesis.token_ids[-1]
            group.num_generated += len(hypothesis.token_ids)
            self.num_generation_tokens += len(hypothesis.token_ids)
            self.sequences.append(
                SequenceOutput(
                    request_id=group.request_id,
                    index=index,
                    token_ids=hypothesis.token_ids,
                    finish_reason=hypothesis.finish_reason,
                    stop_token_id=_stop_token(group, last),
                    cumulative_logprob=hypothesis.cumulative_logprob,
                )
            )
        self.end_group(group, best[0].finish_reason)


def _stop_token(group: SequenceGroup, token_id: int) -> int | None:
    """`token_id` if it is a stop token and not EOS."""
    stop = group.stop
    return token_id if token_id in stop.stop_token_ids and token_id not in stop.eos_token_ids else None


def _ending(group: SequenceGroup, sequence: Sequence, token_id: int) -> tuple[FinishReason | None, int | None]:
    """Whether the sequence ends with this token, and the stop token that ended it."""
    stop, num_output = group.stop, len(sequence.output_token_ids)
    if num_output > stop.min_tokens and (token_id in stop.eos_token_ids or token_id in stop.stop_token_ids):
        return FinishReason.STOP, _stop_token(group, token_id)
    if num_output >= stop.max_tokens:
        return FinishReason.LENGTH, None
    return None, None
