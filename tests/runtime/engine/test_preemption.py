import logging
from collections.abc import Callable

import pytest

from octavo_runtime.engine.block_manager import BlockManager
from octavo_runtime.engine.budget import SchedulingBudget
from octavo_runtime.engine.config import CacheConfig, PreemptionMode
from octavo_runtime.engine.draft import StepDraft
from octavo_runtime.engine.preemption import Preemptor
from octavo_runtime.engine.sequence import GroupState, SequenceGroup

NewGroup = Callable[..., SequenceGroup]


def running(blocks: BlockManager, group: SequenceGroup, num_live: int = 1) -> SequenceGroup:
    """A group that has computed its prompt and, with several, was forked."""
    blocks.can_allocate(group)
    blocks.allocate(group)
    group.leader.num_computed = group.num_prompt
    for index in range(1, num_live):
        child = group.leader.copy(100 + index, index)
        blocks.fork(group.leader, child)
        group.live.append(child)
    group.forked = True
    for sequence in group.live:
        sequence.append(9)
    group.decoding = True
    return group


def setup(mode: PreemptionMode, host: int) -> tuple[BlockManager, Preemptor, StepDraft]:
    blocks = BlockManager(CacheConfig(4, 32, host), 0.0)
    return blocks, Preemptor(mode, blocks), StepDraft(SchedulingBudget(64, 8), 8)


@pytest.mark.parametrize(
    ("mode", "host", "num_live", "expected"),
    [
        (PreemptionMode.RECOMPUTE, 16, 2, GroupState.WAITING),
        (PreemptionMode.SWAP, 16, 1, GroupState.SWAPPED),
        (PreemptionMode.SWAP, 1, 1, GroupState.WAITING),  # swap space is too small
        (PreemptionMode.AUTO, 16, 1, GroupState.WAITING),
        (PreemptionMode.AUTO, 16, 2, GroupState.SWAPPED),
    ],
)
def test_the_mode_decides_and_swap_falls_back_to_recompute(
    new_group: NewGroup, mode: PreemptionMode, host: int, num_live: int, expected: GroupState
) -> None:
    blocks, preemptor, draft = setup(mode, host)
    group = running(blocks, new_group([1] * 6, n=num_live, temperature=1.0), num_live)
    assert preemptor.preempt(group, draft) is expected
    assert blocks.num_free_blocks == 32
    assert draft.preempted
    assert len(draft.swap_out) == (2 if expected is GroupState.SWAPPED else 0)
    assert group.leader.token_ids == [*[1] * 6, 9]
    assert group.leader.num_computed == (6 if expected is GroupState.SWAPPED else 0)


def test_work_and_copies_of_the_step_are_taken_back_before_swapping(new_group: NewGroup) -> None:
    blocks, preemptor, draft = setup(PreemptionMode.SWAP, 16)
    group = running(blocks, new_group([1] * 6, n=2, temperature=1.0), 2)
    shared = group.leader.block_table.copy()
    work = [(sequence, 1) for sequence in group.live]
    draft.add(group, work, blocks.grow(work))
    preemptor.preempt(group, draft)
    assert [pair[0] for pair in draft.swap_out] == shared
    assert (draft.work, draft.copies, draft.budget.num_tokens) == ({}, {}, 0)


def test_every_preemption_counts_and_the_first_and_each_fiftieth_after_it_warns(
    new_group: NewGroup, caplog: pytest.LogCaptureFixture
) -> None:
    blocks, preemptor, draft = setup(PreemptionMode.RECOMPUTE, 0)
    group = new_group([1] * 6)
    with caplog.at_level(logging.WARNING):
        for _ in range(101):
            preemptor.preempt(running(blocks, group), draft)
            group.leader.token_ids[:] = [1] * 6
            group.leader.output_token_ids.clear()
    assert preemptor.num_preemptions == group.num_preemptions == 101
    assert len(caplog.records) == 3
    assert "--max-num-seqs" in caplog.text
