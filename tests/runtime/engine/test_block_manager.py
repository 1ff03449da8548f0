from collections import Counter
from collections.abc import Callable

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from octavo_runtime.engine.admission import make_group
from octavo_runtime.engine.block_manager import AllocStatus, BlockManager
from octavo_runtime.engine.config import CacheConfig, SchedulerConfig
from octavo_runtime.engine.messages import AddRequest
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.engine.sequence import Sequence, SequenceGroup

NewGroup = Callable[..., SequenceGroup]


def manager(num_blocks: int = 16, host: int = 0, caching: bool = True, watermark: float = 0.0) -> BlockManager:
    return BlockManager(CacheConfig(4, num_blocks, host, caching), watermark)


def compute(blocks: BlockManager, group: SequenceGroup, sequence: Sequence, num_tokens: int) -> None:
    """Do what a step does to one sequence."""
    copies = blocks.grow([(sequence, num_tokens)])
    del copies
    sequence.num_computed += num_tokens
    blocks.register(group, sequence)


def admit(blocks: BlockManager, group: SequenceGroup) -> None:
    assert blocks.can_allocate(group) is AllocStatus.OK
    blocks.allocate(group)
    compute(blocks, group, group.leader, group.num_prompt - group.leader.num_computed)


def fork(blocks: BlockManager, group: SequenceGroup, num: int) -> None:
    for index in range(1, num):
        child = group.leader.copy(1000 * group.leader.sequence_id + index, index)
        blocks.fork(group.leader, child)
        group.live.append(child)
    group.forked = True
    group.num_seats = num
    for sequence in group.live:
        sequence.append(50 + sequence.index)


def test_a_prompt_gets_all_its_blocks_at_once(new_group: NewGroup) -> None:
    blocks = manager()
    group = new_group([1] * 9)
    assert blocks.can_allocate(group) is AllocStatus.OK
    blocks.allocate(group)
    assert len(group.leader.block_table) == 3
    assert blocks.num_free_blocks == 13


def test_what_does_not_fit_now_is_later_and_what_never_fits_is_never(new_group: NewGroup) -> None:
    blocks = manager(num_blocks=4)
    admit(blocks, new_group([1] * 9, max_tokens=2))
    assert blocks.can_allocate(new_group([2] * 9, max_tokens=2)) is AllocStatus.LATER
    assert blocks.can_allocate(new_group([2] * 16, max_tokens=1)) is AllocStatus.LATER
    assert blocks.can_allocate(new_group([2] * 16, max_tokens=2)) is AllocStatus.NEVER


@pytest.mark.parametrize(
    ("num_prompt", "n", "max_tokens", "expected"),
    [
        (8, 1, 1, 2),  # the only generated token is never computed
        (8, 1, 2, 3),
        (8, 3, 1, 2),  # all drawn from one row
        (8, 3, 2, 5),  # two shared, one each
        (9, 3, 2, 5),  # two shared, the partial one three times
        (9, 3, 5, 8),
    ],
)
def test_the_worst_case_counts_shared_prompt_blocks_once(
    new_group: NewGroup, num_prompt: int, n: int, max_tokens: int, expected: int
) -> None:
    group = new_group([1] * num_prompt, n=n, max_tokens=max_tokens, temperature=1.0)
    assert manager().worst_case(group) == expected


def test_the_watermark_counts_only_while_others_run(new_group: NewGroup) -> None:
    blocks = manager(num_blocks=10, watermark=0.2)
    assert blocks.can_allocate(new_group([1] * 40, max_tokens=1)) is AllocStatus.OK
    admit(blocks, new_group([2] * 8, max_tokens=1))
    assert blocks.can_allocate(new_group([3] * 24, max_tokens=1)) is AllocStatus.OK
    assert blocks.can_allocate(new_group([3] * 28, max_tokens=1)) is AllocStatus.LATER


def test_equal_prompts_share_their_full_blocks_and_compute_at_least_one_token(new_group: NewGroup) -> None:
    blocks = manager()
    first, second = new_group([1] * 8), new_group([1] * 8)
    admit(blocks, first)
    admit(blocks, second)
    assert second.num_cached_tokens == 4
    assert second.leader.block_table[0] == first.leader.block_table[0]
    assert second.leader.block_table[1] != first.leader.block_table[1]
    assert (blocks.num_queried_tokens, blocks.num_hit_tokens) == (16, 4)


def test_blocks_that_are_not_computed_yet_are_not_shared(new_group: NewGroup) -> None:
    blocks = manager()
    first, second = new_group([1] * 9), new_group([1] * 9)
    assert blocks.can_allocate(first) is AllocStatus.OK
    blocks.allocate(first)
    assert blocks.can_allocate(second) is AllocStatus.OK
    assert second.num_hit_blocks == 0


def test_a_prefix_that_is_being_computed_is_worth_waiting_for_until_it_is_there_or_given_up(
    new_group: NewGroup,
) -> None:
    blocks = manager()
    first, second, other = new_group([1] * 9), new_group([1] * 9), new_group([2] * 9)
    blocks.can_allocate(first)
    blocks.allocate(first)
    assert blocks.awaits_prefix(second)
    assert not blocks.awaits_prefix(other)
    compute(blocks, first, first.leader, 9)
    assert not blocks.awaits_prefix(second)
    third, fourth = new_group([3] * 9), new_group([3] * 9)
    blocks.can_allocate(third)
    blocks.allocate(third)
    assert blocks.awaits_prefix(fourth)
    blocks.free(third.leader)
    assert not blocks.awaits_prefix(fourth)


def test_salts_and_prompt_logprobs_read_nothing_from_the_cache(new_group: NewGroup) -> None:
    blocks = manager(num_blocks=64)
    admit(blocks, new_group([1] * 9, salt="a"))
    for group, hits in [
        (new_group([1] * 9, salt="b"), 0),
        (new_group([1] * 9), 0),
        (new_group([1] * 9, salt="a", prompt_logprobs=0), 0),
        (new_group([1] * 9, salt="a"), 2),
    ]:
        blocks.can_allocate(group)
        assert group.num_hit_blocks == hits


def test_generated_blocks_are_found_by_the_next_turn(new_group: NewGroup) -> None:
    blocks = manager()
    first = new_group([1] * 6)
    admit(blocks, first)
    for token_id in range(10, 16):
        first.leader.append(token_id)
        compute(blocks, first, first.leader, 1)
    blocks.free(first.leader)
    second = new_group([*first.leader.token_ids, 3, 3])
    blocks.can_allocate(second)
    assert second.num_hit_blocks == 3


def test_the_tail_of_a_freed_prompt_is_evicted_before_its_beginning(new_group: NewGroup) -> None:
    blocks = manager(num_blocks=3)
    first = new_group([1] * 12, max_tokens=1)
    admit(blocks, first)
    blocks.free(first.leader)
    admit(blocks, new_group([2] * 4, max_tokens=1))
    again = new_group([1] * 12, max_tokens=1)
    blocks.can_allocate(again)
    assert again.num_hit_blocks == 2


def test_resetting_the_cache_forgets_what_nobody_holds(new_group: NewGroup) -> None:
    blocks = manager()
    first = new_group([1] * 9)
    admit(blocks, first)
    blocks.free(first.leader)
    blocks.reset_prefix_cache()
    again = new_group([1] * 9)
    blocks.can_allocate(again)
    assert again.num_hit_blocks == 0
    assert blocks.num_free_blocks == blocks.num_blocks


def test_forked_sequences_copy_the_partial_block_but_the_last_one(new_group: NewGroup) -> None:
    blocks = manager()
    group = new_group([1] * 6, n=3, temperature=1.0)
    admit(blocks, group)
    fork(blocks, group, 3)
    full, partial = group.leader.block_table
    work = [(sequence, 1) for sequence in group.live]
    assert blocks.blocks_needed(work) == 2
    copies = blocks.grow(work)
    assert [copy.source for copy in copies] == [partial, partial]
    assert {sequence.block_table[0] for sequence in group.live} == {full}
    assert len({sequence.block_table[1] for sequence in group.live}) == 3


def test_a_full_last_block_is_not_copied(new_group: NewGroup) -> None:
    blocks = manager()
    group = new_group([1] * 8, n=2, temperature=1.0)
    admit(blocks, group)
    fork(blocks, group, 2)
    work = [(sequence, 1) for sequence in group.live]
    assert blocks.blocks_needed(work) == 2
    assert blocks.grow(work) == []


def test_copies_that_do_not_happen_are_undone(new_group: NewGroup) -> None:
    blocks = manager(host=8)
    group = new_group([1] * 6, n=3, temperature=1.0)
    admit(blocks, group)
    fork(blocks, group, 3)
    before = [sequence.block_table.copy() for sequence in group.live]
    free = blocks.num_free_blocks
    blocks.undo(blocks.grow([(sequence, 1) for sequence in group.live]))
    assert [sequence.block_table for sequence in group.live] == before
    assert blocks.num_free_blocks == free


def test_swapping_moves_a_shared_block_once_and_keeps_it_shared(new_group: NewGroup) -> None:
    blocks = manager(host=4)
    group = new_group([1] * 6, n=3, temperature=1.0)
    admit(blocks, group)
    fork(blocks, group, 3)
    assert blocks.can_swap_out(group)
    assert len(blocks.swap_out(group)) == 2
    assert blocks.num_free_blocks == blocks.num_blocks
    assert blocks.num_free_host_blocks == 2
    assert blocks.can_swap_in(group)
    assert len(blocks.swap_in(group)) == 2
    assert blocks.num_free_blocks == blocks.num_blocks - 2
    tables = {tuple(sequence.block_table) for sequence in group.live}
    assert len(tables) == 1


def test_host_blocks_are_free_only_after_the_step_that_reads_them(new_group: NewGroup) -> None:
    blocks = manager(host=2)
    group = new_group([1] * 6)
    admit(blocks, group)
    blocks.swap_out(group)
    blocks.swap_in(group)
    assert blocks.num_free_host_blocks == 0
    blocks.end_step()
    assert blocks.num_free_host_blocks == 2


def test_only_computed_blocks_are_swapped_and_too_little_room_is_refused(new_group: NewGroup) -> None:
    blocks = manager(host=1)
    group = new_group([1] * 12)
    blocks.can_allocate(group)
    blocks.allocate(group)
    assert not blocks.can_swap_out(group)  # nothing computed, nothing to keep
    compute(blocks, group, group.leader, 3)
    assert blocks.can_swap_out(group)
    compute(blocks, group, group.leader, 3)
    assert not blocks.can_swap_out(group)


class BlockMachine(RuleBasedStateMachine):
    """Groups are admitted, grow, fork, are swapped and freed in any order; the accounting must hold after each."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = manager(num_blocks=24, host=10, watermark=0.05)
        self.active: list[SequenceGroup] = []
        self.swapped: list[SequenceGroup] = []
        self.number = 0

    @rule(first=st.integers(1, 2), length=st.integers(1, 20), n=st.integers(1, 3), salt=st.sampled_from([None, "a"]))
    def admit(self, first: int, length: int, n: int, salt: str | None) -> None:
        self.number += 1
        params = SamplingParams(n=n, max_tokens=12)
        request = AddRequest(
            request_id=str(self.number), prompt_token_ids=[first] + [1] * (length - 1), params=params, cache_salt=salt
        )
        group = make_group(request, SchedulerConfig(), self.number, self.number, 0.0)
        status = self.blocks.can_allocate(group)
        if status is AllocStatus.OK:
            admit(self.blocks, group)
            self.active.append(group)
        elif not self.active:
            assert status is AllocStatus.NEVER

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def decode(self, data: st.DataObject) -> None:
        group = data.draw(st.sampled_from(self.active))
        if not group.leader.output_token_ids:
            fork(self.blocks, group, group.num_seats)
        work = [(sequence, 1) for sequence in group.live]
        if self.blocks.blocks_needed(work) > self.blocks.num_free_blocks:
            return
        free = self.blocks.num_free_blocks
        needed = self.blocks.blocks_needed(work)
        copies = self.blocks.grow(work)
        assert self.blocks.num_free_blocks == free - needed
        if data.draw(st.booleans()):
            self.blocks.undo(copies)
            return
        refs = self.blocks._device.ref_counts
        for sequence in group.live:
            assert refs[sequence.block_table[sequence.num_computed // 4]] == 1
            sequence.num_computed += 1
            self.blocks.register(group, sequence)
            sequence.append(sequence.index)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def swap_out(self, data: st.DataObject) -> None:
        group = data.draw(st.sampled_from(self.active))
        if self.blocks.can_swap_out(group):
            self.blocks.swap_out(group)
            self.active.remove(group)
            self.swapped.append(group)

    @precondition(lambda self: self.swapped)
    @rule(data=st.data())
    def swap_in(self, data: st.DataObject) -> None:
        group = data.draw(st.sampled_from(self.swapped))
        if self.blocks.can_swap_in(group):
            self.blocks.swap_in(group)
            self.blocks.end_step()
            self.swapped.remove(group)
            self.active.append(group)
            if group.leader.output_token_ids:
                work = [(sequence, 1) for sequence in group.live]
                assert self.blocks.blocks_needed(work) <= self.blocks.num_free_blocks

    @precondition(lambda self: self.active or self.swapped)
    @rule(data=st.data())
    def free_one(self, data: st.DataObject) -> None:
        group = data.draw(st.sampled_from(self.active + self.swapped))
        self.blocks.free(group.live.pop())
        if not group.live:
            (self.active if group in self.active else self.swapped).remove(group)

    @rule()
    def reset(self) -> None:
        self.blocks.reset_prefix_cache()

    @invariant()
    def every_block_is_accounted_for(self) -> None:
        live = [sequence for group in self.active + self.swapped for sequence in group.live]
        device = Counter(block for sequence in live for block in sequence.block_table)
        host = Counter(block for sequence in live for block in sequence.host_table)
        assert {b: n for b, n in enumerate(self.blocks._device.ref_counts) if n} == device
        assert {b: n for b, n in enumerate(self.blocks._host.ref_counts) if n} == host
        assert self.blocks.num_free_blocks == self.blocks.num_blocks - len(device)
        assert all(owner in live for owner in self.blocks._promised.values())

    def teardown(self) -> None:
        for group in self.active + self.swapped:
            for sequence in group.live:
                self.blocks.free(sequence)
        assert self.blocks.num_free_blocks == self.blocks.num_blocks
        assert self.blocks.num_free_host_blocks == self.blocks.num_host_blocks
        assert not self.blocks._promised


def test_the_block_accounting_holds_in_any_order() -> None:
    run_state_machine_as_test(BlockMachine, settings=settings(max_examples=40, stateful_step_count=40, deadline=None))


@pytest.mark.slow
def test_the_block_accounting_holds_in_any_order_in_the_long_form() -> None:
    run_state_machine_as_test(BlockMachine, settings=settings(max_examples=400, stateful_step_count=80, deadline=None))
