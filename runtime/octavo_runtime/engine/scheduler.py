"""`Scheduler`: which groups run in the next step, who is taken in and who is preempted.

A sequence is (computed tokens, total tokens), so prompts, chunks, prefix hits, decodes and recompute are one thing:
tokens to compute within one budget. Two policies over three queues (waiting, running, swapped): chunked prefill
(decodes first, then chunks of prompts fill the step) and prefill-first (whole prompts, decodes wait). Only the last
group in order is ever preempted for room, so the first one always gets on. Reads no clock and runs nothing.
"""

from octavo_runtime.engine.block_manager import AllocStatus, BlockManager, Work
from octavo_runtime.engine.budget import SchedulingBudget
from octavo_runtime.engine.config import SchedulerConfig, SchedulingPolicy
from octavo_runtime.engine.draft import StepDraft
from octavo_runtime.engine.preemption import Preemptor
from octavo_runtime.engine.queues import GroupQueue, RunningList
from octavo_runtime.engine.rows import ScheduledStep, make_step
from octavo_runtime.engine.sequence import GroupState, Sequence, SequenceGroup

_MAX_DEFERRED = 16
"""Groups that one step looks past because a shared prefix is being computed; bounds the step's time."""


class Scheduler:
    """The three queues and the rules between them."""

    def __init__(self, config: SchedulerConfig, blocks: BlockManager) -> None:
        self.waiting = GroupQueue(GroupState.WAITING)
        self.swapped = GroupQueue(GroupState.SWAPPED)
        self.running = RunningList()
        self.num_deferred = 0  # waiting groups that the last step left for a prefix that is being computed
        self._config = config
        self._blocks = blocks
        self._preemptor = Preemptor(config.preemption_mode, blocks)
        self._last_prompt_latency = 0.0
        self._last_prompt_start: float | None = None  # of the previous step, if it computed prompts

    @property
    def num_preemptions(self) -> int:
        return self._preemptor.num_preemptions

    @property
    def has_work(self) -> bool:
        return bool(self.running) or bool(self.waiting) or bool(self.swapped)

    def add(self, group: SequenceGroup) -> None:
        """Queue a group that `BlockManager.worst_case` says can run."""
        self.waiting.push(group)

    def remove(self, group: SequenceGroup) -> None:
        """Let a finished or aborted group go, wherever it is, with all its blocks."""
        for sequence in group.live:
            self._blocks.free(sequence)
        if group.state is GroupState.RUNNING:
            self.running.remove(group)
            group.state = GroupState.FINISHED
        elif group.state is not GroupState.FINISHED:
            queue = self.waiting if group.state is GroupState.WAITING else self.swapped
            queue.discard(group, GroupState.FINISHED)

    def schedule(self, now: float) -> ScheduledStep:
        """Decide the next step; the queues and block tables are as if it had run, but for tokens not computed yet."""
        budget = SchedulingBudget(self._config.max_num_batched_tokens, self._config.max_num_seqs)
        for group in self.running:
            budget.add_num_seqs(group.request_id, group.num_seats)
        draft = StepDraft(budget, self._config.max_logits_rows)
        self.num_deferred = 0
        if self._config.chunked_prefill:
            self._run_decodes(draft)
            self._run_prompts(draft)
            self._take_swapped(draft)
            self._take_waiting(draft, now)
        else:
            self._prefill_first(draft, now)
        return make_step(draft, self._blocks.block_size)

    def _prefill_first(self, draft: StepDraft, now: float) -> None:
        if self._last_prompt_start is not None:
            self._last_prompt_latency = now - self._last_prompt_start
        self._run_prompts(draft)
        if self._delay_is_over(now):
            self._take_waiting(draft, now)
        self._last_prompt_start = now if draft.work else None
        if not draft.work:
            self._run_decodes(draft)
            self._take_swapped(draft)

    def _delay_is_over(self, now: float) -> bool:
        """Whether prompts may interrupt decodes again (for a first-come queue the head has waited longest)."""
        head = self.waiting.peek()
        if head is None or not self.running:
            return True
        return now - head.arrival_time >= self._config.delay_factor * self._last_prompt_latency

    # Running groups

    def _run_decodes(self, draft: StepDraft) -> None:
        blocks, budget = self._blocks, draft.budget
        for group in list(self.running):
            if not group.decoding or group.state is not GroupState.RUNNING:
                continue
            left = budget.remaining_tokens
            if left <= 0:
                return
            live = group.live
            if len(live) == 1:
                work: Work = ((live[0], 1),)
                if blocks.has_slot(live[0]):
                    draft.add(group, work)
                    continue
            elif len(live) <= left:
                work = [(sequence, 1) for sequence in live]
            elif group.beams is not None:  # beams go in lockstep
                continue
            else:
                work = [(sequence, 1) for sequence in live[:left]]
            self._run(group, work, draft)

    def _run_prompts(self, draft: StepDraft) -> None:
        """Go on with groups that have more than one token per sequence to compute."""
        for group in list(self.running):
            if group.decoding or group.state is not GroupState.RUNNING:
                continue
            work = self._chunks(group, draft)
            if work:
                self._run(group, work, draft)

    def _run(self, group: SequenceGroup, work: Work, draft: StepDraft) -> None:
        """Find blocks for `work`, from the last running groups if need be; if that is `group`, it does not run."""
        needed = self._blocks.blocks_needed(work)
        while needed > self._blocks.num_free_blocks:
            victim = self.running.last()
            self._preempt(victim, draft)
            if victim is group:
                return
        draft.add(group, work, self._blocks.grow(work))

    def _chunks(self, group: SequenceGroup, draft: StepDraft) -> list[tuple[Sequence, int]]:
        """What of its pending tokens each sequence computes now."""
        left = draft.budget.remaining_tokens
        if self._config.long_prefill_token_threshold > 0:
            left = min(left, max(self._config.long_prefill_token_threshold, len(group.live)))
        if group.prompt_logprobs is not None:
            left = min(left, draft.logits_rows_left)
        if group.beams is not None and not group.never_sampled and group.forked:
            return self._beam_chunks(group, left)
        return _split(group, group.live if group.forked else group.live[:1], left, keep=0)

    def _beam_chunks(self, group: SequenceGroup, left: int) -> list[tuple[Sequence, int]]:
        """Beams are sampled together, so nobody computes its last token before all can."""
        if all(sequence.num_pending == 1 for sequence in group.live):
            return [(sequence, 1) for sequence in group.live] if len(group.live) <= left else []
        return _split(group, group.live, left, keep=1)

    def _preempt(self, group: SequenceGroup, draft: StepDraft) -> None:
        self.running.remove(group)
        if self._preemptor.preempt(group, draft) is GroupState.SWAPPED:
            self.swapped.push(group)
        else:
            self.waiting.push(group)

    # Groups that come (back) in

    def _take_swapped(self, draft: StepDraft) -> None:
        while not draft.preempted and draft.budget.remaining_tokens > 0:
            group, head = self.swapped.peek(), self.waiting.peek()
            if group is None or (head is not None and head.priority < group.priority):
                return
            if not draft.budget.can_schedule(1, group.num_seats) or not self._blocks.can_swap_in(group):
                return
            draft.swap_in.extend(self._blocks.swap_in(self.swapped.pop()))
            self._start(group, draft)
            work = self._resumed_work(group, draft)
            if work:
                draft.add(group, work, self._blocks.grow(work))

    def _resumed_work(self, group: SequenceGroup, draft: StepDraft) -> Work:
        if not group.decoding:
            return self._chunks(group, draft)
        left = draft.budget.remaining_tokens
        if group.beams is not None and len(group.live) > left:
            return []
        return [(sequence, 1) for sequence in group.live[:left]]

    def _take_waiting(self, draft: StepDraft, now: float) -> None:
        """Admit groups in order; some whose prompt begins with what is being computed are left for the next step."""
        deferred: list[SequenceGroup] = []
        self._admit(draft, now, deferred)
        self.num_deferred = len(deferred)
        for group in deferred:
            self.waiting.push(group)

    def _admit(self, draft: StepDraft, now: float, deferred: list[SequenceGroup]) -> None:
        while not draft.preempted and draft.budget.remaining_tokens > 0:
            group = self._next_waiting()
            if group is None or (group.prompt_logprobs is not None and draft.logits_rows_left <= 0):
                return
            if self._blocks.awaits_prefix(group):
                if len(deferred) == _MAX_DEFERRED:
                    return
                deferred.append(self.waiting.pop())
                continue
            if not self._find_room(group, draft):
                return
            num_tokens = group.target(group.leader) - group.num_hit_blocks * self._blocks.block_size
            if not self._config.chunked_prefill and draft.work and num_tokens > draft.budget.remaining_tokens:
                return
            self._blocks.allocate(self.waiting.pop())
            self._start(group, draft)
            if group.first_scheduled_time is None:
                group.first_scheduled_time = now
            draft.add(group, self._chunks(group, draft))

    def _next_waiting(self) -> SequenceGroup | None:
        """The head of the queue, unless a group that goes before it is swapped out."""
        group, swapped = self.waiting.peek(), self.swapped.peek()
        if group is not None and swapped is not None and swapped.order < group.order:
            return None
        return group

    def _find_room(self, group: SequenceGroup, draft: StepDraft) -> bool:
        """Whether seats and blocks are there, made by preempting groups of lower priority if the policy says so."""
        while True:
            seats = draft.budget.can_schedule(1, group.num_seats)
            if seats and self._blocks.can_allocate(group) is AllocStatus.OK:
                return True
            victim = self._lower_priority_victim(group, draft)
            if victim is None:
                return False
            self._preempt(victim, draft)

    def _lower_priority_victim(self, group: SequenceGroup, draft: StepDraft) -> SequenceGroup | None:
        if self._config.policy is not SchedulingPolicy.PRIORITY:
            return None
        for victim in reversed(self.running):
            if victim.priority <= group.priority:
                return None
            if victim not in draft.fresh:
                return victim
        return None

    def _start(self, group: SequenceGroup, draft: StepDraft) -> None:
        self.running.add(group)
        draft.fresh.add(group)
        draft.budget.add_num_seqs(group.request_id, group.num_seats)


def _split(group: SequenceGroup, sequences: list[Sequence], left: int, keep: int) -> list[tuple[Sequence, int]]:
    """Share `left` tokens among the sequences in order; each keeps `keep` of its tokens for later."""
    work = []
    for sequence in sequences:
        num_tokens = min(group.target(sequence) - sequence.num_computed - keep, left)
        if num_tokens > 0:
            work.append((sequence, num_tokens))
            left -= num_tokens
    return work
