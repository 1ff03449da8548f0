from collections.abc import Callable

from octavo_runtime.engine.messages import AddRequest
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.engine.sequence import Sequence, SequenceGroup, resolve_stop_rules


def stop_rules(prompt: int, **params: object) -> object:
    request = AddRequest(
        request_id="r",
        prompt_token_ids=[1] * prompt,
        params=SamplingParams(**params),
        eos_token_ids=(2,),
    )
    return resolve_stop_rules(request, max_model_len=10)


def test_max_tokens_is_limited_by_the_context() -> None:
    assert stop_rules(4).max_tokens == 6
    assert stop_rules(4, max_tokens=100).max_tokens == 6
    assert stop_rules(4, max_tokens=3).max_tokens == 3


def test_ignoring_eos_leaves_the_stop_tokens() -> None:
    assert stop_rules(4, stop_token_ids=(5,)).terminators == {2, 5}
    assert stop_rules(4, stop_token_ids=(5,), ignore_eos=True).terminators == {5}


def test_a_copy_has_its_own_history_and_no_blocks() -> None:
    parent = Sequence(sequence_id=1, index=0, token_ids=[1, 2], block_table=[7], num_computed=2)
    parent.append(3)
    child = parent.copy(2, 1)
    child.append(4)
    assert (parent.token_ids, child.token_ids) == ([1, 2, 3], [1, 2, 3, 4])
    assert (child.output_token_ids, child.block_table, child.num_computed) == ([3, 4], [], 0)


def test_before_the_fork_only_the_leader_computes_and_only_the_prompt(
    new_group: Callable[..., SequenceGroup],
) -> None:
    group = new_group([1, 2, 3], n=2, temperature=1.0)
    group.live.append(group.leader.copy(99, 1))
    for sequence in group.live:
        sequence.append(5)
    assert [group.target(sequence) for sequence in group.live] == [3, 0]
    group.forked = True
    assert [group.target(sequence) for sequence in group.live] == [4, 4]


def test_a_restarted_group_keeps_tokens_and_forks_again(new_group: Callable[..., SequenceGroup]) -> None:
    group = new_group([1, 2, 3], n=2, temperature=1.0, prompt_logprobs=1)
    group.live.append(group.leader.copy(99, 1))
    group.forked = group.decoding = True
    group.leader.num_computed = 3
    group.prompt_logprobs = ["something"]
    group.restart()
    assert (group.forked, group.decoding, group.leader.num_computed) == (False, False, 0)
    assert group.prompt_logprobs == []
    group.live.pop()
    group.num_seats = 1
    group.restart()
    assert group.forked
