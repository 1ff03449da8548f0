from collections.abc import Callable

from octavo_runtime.engine.budget import SchedulingBudget
from octavo_runtime.engine.draft import StepDraft
from octavo_runtime.engine.plan import Row
from octavo_runtime.engine.rows import make_step
from octavo_runtime.engine.seeds import uniform
from octavo_runtime.engine.sequence import SequenceGroup

NewGroup = Callable[..., SequenceGroup]


def row(group: SequenceGroup, num_tokens: int) -> Row:
    draft = StepDraft(SchedulingBudget(64, 8), 64)
    draft.add(group, [(group.leader, num_tokens)])
    step = make_step(draft, block_size=4)
    assert step.sequences == ((group, group.leader),)
    return step.plan.rows[0]


def with_blocks(group: SequenceGroup, computed: int = 0) -> SequenceGroup:
    group.leader.block_table = [7, 3, 5]
    group.leader.num_computed = computed
    return group


def test_a_chunk_has_only_its_blocks_and_draws_nothing(new_group: NewGroup) -> None:
    chunk = row(with_blocks(new_group([1, 2, 3, 4, 5, 6, 7, 8, 9])), 5)
    assert (chunk.token_ids, chunk.start, chunk.block_table, chunk.sampling) == ([1, 2, 3, 4, 5], 0, [7, 3], None)


def test_the_last_chunk_draws(new_group: NewGroup) -> None:
    group = with_blocks(new_group([1, 2, 3, 4, 5, 6, 7, 8, 9], seed=4, temperature=1.0), 5)
    last = row(group, 4)
    assert (last.token_ids, last.start, last.block_table) == ([6, 7, 8, 9], 5, [7, 3, 5])
    assert last.sampling is not None
    assert last.sampling.uniforms == (uniform(4, 0, 0),)
    assert last.sampling.prompt_token_ids == group.prompt_token_ids


def test_the_first_draw_of_a_group_is_one_per_sequence(new_group: NewGroup) -> None:
    sampling = row(with_blocks(new_group([1] * 9, n=3, seed=4, temperature=1.0)), 9).sampling
    assert sampling is not None
    assert sampling.uniforms == tuple(uniform(4, index, 0) for index in range(3))


def test_beams_ask_for_candidates_and_draw_nothing(new_group: NewGroup) -> None:
    group = with_blocks(new_group([1] * 9, n=3, use_beam_search=True, stop_token_ids=(2, 3)))
    sampling = row(group, 9).sampling
    assert sampling is not None
    assert (sampling.uniforms, sampling.num_beam_candidates, sampling.num_logprobs) == ((), 5, None)


def test_what_is_asked_for_greedy_tokens_is_made_once_min_tokens_are_there(new_group: NewGroup) -> None:
    group = with_blocks(new_group([1] * 8, temperature=0.0, min_tokens=1, stop_token_ids=(2,)), 7)
    first = row(group, 1).sampling
    group.leader.append(5)
    group.leader.num_computed = 8
    second, third = row(group, 1).sampling, row(group, 1).sampling
    assert first is not None
    assert second is not None
    assert first.banned_token_ids == (2,)
    assert second.banned_token_ids == ()
    assert second is third
    assert second.output_token_ids == [5]


def test_prompt_targets_are_the_next_prompt_tokens(new_group: NewGroup) -> None:
    group = with_blocks(new_group([1, 2, 3, 4, 5], prompt_logprobs=2))
    assert (row(group, 3).prompt_targets, row(group, 3).num_prompt_logprobs) == ([2, 3, 4], 2)
    group.leader.num_computed = 3
    assert row(group, 2).prompt_targets == [5]
