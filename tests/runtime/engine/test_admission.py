from collections.abc import Callable
from typing import Any

import pytest

from octavo_runtime.engine.admission import check_request, make_group
from octavo_runtime.engine.config import SchedulerConfig, SchedulingPolicy
from octavo_runtime.engine.messages import AddRequest, FinishReason
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
    assert num_logprobs(n=2, best_of=3, use_beam_search=True) is None


def test_terminators_are_banned_only_if_min_tokens_asks_for_it() -> None:
    assert make_group(request([1], eos=(2,)), SchedulerConfig(), 1, 1, 0.0).banned_token_ids == ()
    group = make_group(request([1], eos=(2,), min_tokens=1, stop_token_ids=(9, 4)), SchedulerConfig(), 1, 1, 0.0)
    assert group.banned_token_ids == (2, 4, 9)


@pytest.mark.parametrize("token_id", [-1, 8, 2**31, 2**70, -(2**70)])
@pytest.mark.parametrize("field", ["prompt", "allowed_token_ids", "logit_bias"])
def test_token_ids_that_the_model_lacks_are_refused_by_name(field: str, token_id: int) -> None:
    config = SchedulerConfig(vocab_size=8)
    values = {"allowed_token_ids": (7, token_id), "logit_bias": {7: 1.0, token_id: 1.0}}
    wrong = request([7, token_id]) if field == "prompt" else request([7], **{field: values[field]})
    problem = check_request(wrong, config) or ""
    assert field in problem
    assert "0 ... 7" in problem


@pytest.mark.parametrize("token_id", [-1, 8, 2**70])
def test_stop_tokens_that_the_model_lacks_do_no_harm(token_id: int) -> None:
    config = SchedulerConfig(vocab_size=8)
    stopping = request([1], stop_token_ids=(token_id, 7), min_tokens=1)
    assert check_request(stopping, config) is None
    assert make_group(stopping, config, 1, 1, 0.0).banned_token_ids == (7,)


def test_a_default_length_is_what_the_cache_has_room_for_and_an_explicit_one_is_refused(
    make_engine: Callable[..., Any],
) -> None:
    harness = make_engine(num_blocks=16, max_model_len=64)
    harness.add("default", [1] * 9, n=4, temperature=1.0, max_tokens=None)
    harness.add("explicit", [1] * 9, n=4, temperature=1.0, max_tokens=55)
    harness.add("one", [1] * 9, max_tokens=None)
    harness.run()
    assert harness.finished["explicit"].reason is FinishReason.ERROR
    assert {len(harness.tokens["default", index]) for index in range(4)} == {12}  # 2 shared blocks, 3 for each
    assert len(harness.tokens["one", 0]) == 55


def test_the_group_keeps_its_own_copy_of_the_prompt() -> None:
    prompt = [1, 2]
    group = make_group(request(prompt), SchedulerConfig(), 1, 1, 0.0)
    group.leader.append(3)
    assert prompt == group.prompt_token_ids == [1, 2]
