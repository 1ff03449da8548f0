from typing import Any

import pytest

from octavo_runtime.engine.admission import check_request, make_group
from octavo_runtime.engine.config import SchedulerConfig, SchedulingPolicy
from octavo_runtime.engine.messages import AddRequest
from octavo_runtime.engine.sampling_params import SamplingParams


def request(prompt: list[int], priority: int = 0, eos: tuple[int, ...] = (), **params: Any) -> AddRequest:
    return AddRequest(
        request_id="r",
        prompt_token_ids=prompt,
        params=SamplingParams(**params),
        priority=priority,
        eos_token_ids=eos,
    )


def test_the_longest_prompt_leaves_room_for_one_token() -> None:
    config = SchedulerConfig(max_model_len=8)
    assert check_request(request([1] * 7), config) is None
    assert "8 tokens" in (check_request(request([1] * 8), config) or "")


@pytest.mark.parametrize(("policy", "order"), [(SchedulingPolicy.FCFS, (0, 5)), (SchedulingPolicy.PRIORITY, (3, 5))])
def test_priority_matters_only_under_its_policy(policy: SchedulingPolicy, order: tuple[int, int]) -> None:
    assert make_group(request([1], priority=3), SchedulerConfig(policy=policy), 1, 5, 0.0).order == order


def test_several_sequences_are_forked_later_and_take_their_seats_now() -> None:
    group = make_group(request([1], n=2, best_of=4), SchedulerConfig(), 1, 1, 0.0)
    assert (group.forked, group.num_seats, len(group.live)) == (False, 4, 1)


def test_best_of_needs_the_log_probability_of_every_token() -> None:
    def num_logprobs(**params: Any) -> int | None:
        return make_group(request([1], **params), SchedulerConfig(), 1, 1, 0.0).num_logprobs

    assert num_logprobs(n=2) is None
    assert num_logprobs(n=2, best_of=3) == 0
    assert num_logprobs(n=2, best_of=3, logprobs=5) == 5
    assert num_logprobs(n=2, use_beam_search=True, logprobs=5) is None


def test_terminators_are_banned_only_if_min_tokens_asks_for_it() -> None:
    assert make_group(request([1], eos=(2,)), SchedulerConfig(), 1, 1, 0.0).banned_token_ids == ()
    group = make_group(request([1], eos=(2,), min_tokens=1, stop_token_ids=(9, 4)), SchedulerConfig(), 1, 1, 0.0)
    assert group.banned_token_ids == (2, 4, 9)


def test_the_group_keeps_its_own_copy_of_the_prompt() -> None:
    prompt = [1, 2]
    group = make_group(request(prompt), SchedulerConfig(), 1, 1, 0.0)
    group.leader.append(3)
    assert prompt == group.prompt_token_ids == [1, 2]
