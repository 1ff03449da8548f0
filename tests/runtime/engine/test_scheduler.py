from collections.abc import Callable
from typing import Any

from octavo_runtime.engine.config import PreemptionMode, SchedulingPolicy

MakeEngine = Callable[..., Any]


def lengths(plan: Any) -> list[int]:
    """Tokens of every row."""
    return [len(row.token_ids) for row in plan.rows]


def different(number: int, length: int) -> list[int]:
    """A prompt that shares no prefix with those of other numbers."""
    return [number + 1] * length


def test_decodes_go_first_and_chunks_of_prompts_fill_the_step(make_engine: MakeEngine) -> None:
    harness = make_engine(max_num_batched_tokens=8)
    harness.add("a", different(0, 3), max_tokens=5)
    harness.step()
    harness.add("b", different(1, 10), max_tokens=2)
    for _ in range(3):
        harness.step()
    assert [lengths(plan) for plan in harness.plans] == [[3], [1, 7], [1, 3], [1, 1]]


def test_no_step_exceeds_its_tokens_or_sequences(make_engine: MakeEngine) -> None:
    harness = make_engine(max_num_batched_tokens=10, max_num_seqs=3)
    for number in range(8):
        harness.add(str(number), different(number, 7), max_tokens=6)
    harness.run()
    assert max(plan.num_tokens for plan in harness.plans) == 10
    assert max(len(plan.rows) for plan in harness.plans) == 3


def test_a_group_takes_the_seats_of_all_its_sequences_from_the_start(make_engine: MakeEngine) -> None:
    harness = make_engine(max_num_seqs=4)
    harness.add("a", [1] * 3, n=3, temperature=1.0)
    harness.add("b", [2] * 3, n=2, temperature=1.0)
    assert harness.step().stats.num_running == 1


def test_a_long_prompt_takes_no_more_than_the_threshold_of_a_step(make_engine: MakeEngine) -> None:
    harness = make_engine(max_num_batched_tokens=32, long_prefill_token_threshold=5)
    harness.add("long", different(0, 12))
    harness.add("short", different(1, 3))
    harness.step()
    assert lengths(harness.plans[0]) == [5, 3]


def test_prefill_first_computes_whole_prompts_and_no_decodes_beside_them(make_engine: MakeEngine) -> None:
    harness = make_engine(max_num_batched_tokens=16, chunked_prefill=False)
    harness.add("a", different(0, 6), max_tokens=3)
    harness.step()
    harness.add("b", different(1, 9), max_tokens=3)
    harness.add("c", different(2, 8), max_tokens=3)
    for _ in range(3):
        harness.step()
    assert [lengths(plan) for plan in harness.plans] == [[6], [9], [8], [1, 1, 1]]


def test_prefill_first_cuts_only_prompts_that_no_step_could_hold(make_engine: MakeEngine) -> None:
    harness = make_engine(max_num_batched_tokens=8, chunked_prefill=False)
    harness.add("a", different(0, 20), max_tokens=1)
    harness.run()
    assert [lengths(plan) for plan in harness.plans] == [[8], [8], [4]]


def test_the_delay_factor_lets_decodes_run_between_prompts(make_engine: MakeEngine) -> None:
    def kinds(delay_factor: float) -> list[int]:
        harness = make_engine(chunked_prefill=False, delay_factor=delay_factor)
        harness.add("a", different(0, 8), max_tokens=30)
        harness.step()
        harness.add("b", different(1, 8), max_tokens=30)
        for _ in range(12):
            harness.step()
        return [plan.num_tokens for plan in harness.plans]

    assert kinds(0.0)[1] == 8
    assert kinds(3.0)[1:3] == [1, 1]
    assert 8 in kinds(3.0)[1:]


def test_a_prompt_waits_until_all_of_it_fits(make_engine: MakeEngine) -> None:
    harness = make_engine(num_blocks=6, max_num_batched_tokens=4)
    harness.add("a", different(0, 12), max_tokens=4)
    harness.add("b", different(1, 16), max_tokens=1)
    for _ in range(4):
        assert harness.step().stats.num_running == 1
    harness.run()
    assert len(harness.finished) == 2
    assert harness.outputs[-1].stats.num_preemptions == 0


def test_the_youngest_is_preempted_and_the_oldest_never(make_engine: MakeEngine) -> None:
    harness = make_engine(num_blocks=8, preemption_mode=PreemptionMode.RECOMPUTE)
    for number in range(3):
        harness.add(str(number), different(number, 8), max_tokens=14)
    harness.run()
    counts = [harness.finished[str(number)].num_preemptions for number in range(3)]
    assert counts[0] == 0
    assert counts[2] > 0


def test_a_preempted_group_comes_back_before_those_that_arrived_later(make_engine: MakeEngine) -> None:
    harness = make_engine(num_blocks=8, preemption_mode=PreemptionMode.RECOMPUTE)
    for number in range(5):
        harness.add(str(number), different(number, 8), max_tokens=14)
    harness.run()
    assert [event.request_id for step in harness.outputs for event in step.finished] == list("01234")


def test_a_swapped_group_goes_on_where_it_was(make_engine: MakeEngine) -> None:
    harness = make_engine(num_blocks=8, num_host_blocks=8, preemption_mode=PreemptionMode.SWAP, prefix_caching=False)
    for number in range(3):
        harness.add(str(number), different(number, 8), max_tokens=14)
    harness.run()
    assert any(plan.swap_out for plan in harness.plans)
    assert any(plan.swap_in for plan in harness.plans)
    assert sum(plan.num_tokens for plan in harness.plans) == 3 * (8 + 13)  # nothing was computed twice


def test_a_request_of_higher_priority_takes_the_place_of_a_lower_one(make_engine: MakeEngine) -> None:
    harness = make_engine(num_blocks=8, max_num_seqs=2, policy=SchedulingPolicy.PRIORITY)
    harness.add("low", different(0, 12), priority=5, max_tokens=12)
    harness.add("middle", different(1, 8), priority=3, max_tokens=12)
    harness.step()
    harness.add("high", different(2, 8), priority=1, max_tokens=12)
    harness.run()
    assert [event.request_id for step in harness.outputs for event in step.finished] == ["high", "middle", "low"]
    assert harness.finished["low"].num_preemptions > 0
    assert harness.finished["high"].num_preemptions == 0


def test_equal_priority_preempts_nobody_to_get_in(make_engine: MakeEngine) -> None:
    harness = make_engine(max_num_seqs=1, policy=SchedulingPolicy.PRIORITY)
    harness.add("a", [1], priority=1)
    harness.step()
    harness.add("b", [2], priority=1)
    harness.run()
    assert harness.finished["a"].num_preemptions == 0


def test_requests_wait_for_a_prefix_that_is_being_computed_and_let_others_pass(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("first", [1] * 12)
    harness.add("same", [*[1] * 12, 2])
    harness.add("other", [3] * 5)
    assert harness.step().stats.num_deferred == 1
    assert lengths(harness.plans[0]) == [12, 5]
    assert harness.step().stats.num_deferred == 0
    assert harness.plans[1].num_tokens == 3  # two decodes, and the one token that "same" does not share
    harness.run()
    assert harness.finished["same"].num_cached_tokens == 12


def test_beams_decode_in_the_same_step_or_not_at_all(make_engine: MakeEngine) -> None:
    harness = make_engine(max_num_batched_tokens=4, num_blocks=40)
    harness.add("a", different(0, 4), max_tokens=9)
    harness.add("b", different(1, 4), max_tokens=9)
    harness.add("beams", different(2, 4), n=3, use_beam_search=True, temperature=1.0, max_tokens=6)
    harness.run()
    for plan in harness.plans:
        rows = [row for row in plan.rows if row.sampling and row.sampling.num_beam_candidates]
        assert len(rows) in (0, 1, 3)
        assert len(rows) != 1 or rows[0].start + len(rows[0].token_ids) == 4


def test_many_waiting_requests_cost_nothing_per_step(make_engine: MakeEngine) -> None:
    harness = make_engine(max_num_seqs=2)
    for number in range(3000):
        harness.add(str(number), [number], max_tokens=30)
    harness.step()
    heap = harness.engine.scheduler.waiting._heap
    before = list(heap)
    harness.step()
    assert heap == before
    assert harness.outputs[-1].stats.num_waiting == 2998
