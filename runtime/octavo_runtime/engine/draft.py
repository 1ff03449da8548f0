"""`StepDraft`: the step in the making, to which the scheduler adds work and takes back that of a preempted group.

Holds the budget, the block moves and what may still be asked of the logits; `rows.py` turns it into a frozen
`StepPlan`.
"""

from collections.abc import Iterable

from octavo_runtime.engine.block_manager import CopyOnWrite, Work
from octavo_runtime.engine.budget import SchedulingBudget
from octavo_runtime.engine.sequence import SequenceGroup


class StepDraft:
    """What the step runs so far, per group in the order it was added."""

    __slots__ = ("budget", "copies", "fresh", "logits_rows_left", "preempted", "swap_in", "swap_out", "work")

    def __init__(self, budget: SchedulingBudget, max_logits_rows: int) -> None:
        self.budget = budget
        self.logits_rows_left = max_logits_rows  # prompt positions whose log-probabilities may still be asked for
        self.work: dict[SequenceGroup, Work] = {}
        self.copies: dict[SequenceGroup, Iterable[CopyOnWrite]] = {}
        self.swap_out: list[tuple[int, int]] = []
        self.swap_in: list[tuple[int, int]] = []
        self.preempted = False  # some group lost its blocks in this step: take none in
        self.fresh: set[SequenceGroup] = set()  # admitted or swapped in by this step: no victims

    def add(self, group: SequenceGroup, work: Work, copies: Iterable[CopyOnWrite] = ()) -> None:
        """Run `work`, for which the blocks are there."""
        self.work[group] = work
        num_tokens = len(work) if group.decoding else sum(num for _, num in work)
        self.budget.add_num_batched_tokens(group.request_id, num_tokens)
        if copies:
            self.copies[group] = copies
        if group.prompt_logprobs is not None:
            self.logits_rows_left -= num_tokens

    def drop(self, group: SequenceGroup) -> Iterable[CopyOnWrite]:
        """Forget the group's work and return the copies that will not happen."""
        work = self.work.pop(group, ())
        if group.prompt_logprobs is not None:
            self.logits_rows_left += sum(num for _, num in work)
        self.budget.subtract_num_batched_tokens(group.request_id)
        self.budget.subtract_num_seqs(group.request_id)
        return self.copies.pop(group, ())
