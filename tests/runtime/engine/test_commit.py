from collections.abc import Callable
from typing import Any

import pytest

from octavo_runtime.engine.beam import BeamSearch
from octavo_runtime.engine.config import PreemptionMode
from octavo_runtime.engine.messages import FinishReason

MakeEngine = Callable[..., Any]


def only_group(harness: Any) -> Any:
    (group,) = harness.engine._committer.groups.values()
    return group


def preempt(harness: Any, group: Any) -> None:
    """Preempt by recompute between two steps, as the next `schedule` would."""
    scheduler = harness.engine.scheduler
    scheduler.running.remove(group)
    for sequence in group.live:
        harness.engine.blocks.free(sequence)
    group.restart()
    scheduler.waiting.push(group)


@pytest.mark.parametrize("length", [5, 8])
def test_a_forked_group_recomputes_its_prompt_once_and_then_each_output(make_engine: MakeEngine, length: int) -> None:
    def run(interrupt: bool) -> Any:
        harness = make_engine(preemption_mode=PreemptionMode.RECOMPUTE, prefix_caching=False)
        harness.add("a", [1] * length, n=3, seed=1, temperature=1.0, max_tokens=8)
        for _ in range(4):
            harness.step()
        if interrupt:
            preempt(harness, only_group(harness))
        harness.run()
        return harness

    plain, interrupted = run(False), run(True)
    assert interrupted.tokens == plain.tokens
    assert [plan.num_tokens for plan in interrupted.plans[4:7]] == [length, 12, 3]


def test_when_the_leader_is_given_up_while_the_prompt_is_recomputed_the_next_one_goes_on(
    make_engine: MakeEngine,
) -> None:
    harness = make_engine(max_num_batched_tokens=4, prefix_caching=False)
    harness.add("a", [1] * 9, n=3, seed=1, temperature=1.0, max_tokens=6)
    for _ in range(5):
        harness.step()
    group = only_group(harness)
    preempt(harness, group)
    harness.step()
    computed = group.leader.num_computed
    harness.engine.abort_request("a", group.leader.index)
    assert group.leader.num_computed == computed == 4
    harness.engine.abort_request("a", group.leader.index)
    harness.run()
    alone = make_engine(prefix_caching=False)
    alone.add("a", [1] * 9, n=3, seed=1, temperature=1.0, max_tokens=6)
    alone.run()
    assert harness.tokens["a", 2] == alone.tokens["a", 2]
    assert harness.engine.blocks.num_free_blocks == 64


def test_parents_without_children_are_freed_and_others_share(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("a", [1] * 6, n=3, use_beam_search=True, temperature=1.0, max_tokens=12)
    for _ in range(6):
        harness.step()
        group = only_group(harness)
        held = {block for sequence in group.live for block in sequence.block_table}
        assert harness.engine.blocks.num_free_blocks == 64 - len(held)
        assert [sequence.index for sequence in group.live] == [0, 1, 2]
        assert len({tuple(sequence.token_ids) for sequence in group.live}) == 3


def test_a_preempted_beam_search_finds_the_same_beams(make_engine: MakeEngine) -> None:
    def run(interrupt: bool) -> Any:
        harness = make_engine(max_num_batched_tokens=7, prefix_caching=False)
        harness.add("a", [1] * 6, n=3, use_beam_search=True, temperature=1.0, max_tokens=9)
        for _ in range(5):
            harness.step()
        if interrupt:
            preempt(harness, only_group(harness))
        harness.run()
        return harness.tokens

    assert run(True) == run(False)


def test_the_request_ends_with_the_reason_of_its_first_sequence(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("a", [1] * 6, n=2, temperature=1.0, max_tokens=5, seed=3)
    harness.step()
    harness.engine.abort_request("a", 1)
    harness.run()
    assert harness.finished["a"].reason is FinishReason.LENGTH


def test_beams_with_every_token_forbidden_end_with_an_error(make_engine: MakeEngine) -> None:
    harness = make_engine()
    everything = tuple(range(64))
    harness.add(
        "a", [1] * 6, n=2, use_beam_search=True, temperature=1.0, max_tokens=5, min_tokens=2, stop_token_ids=everything
    )
    harness.run()
    assert harness.finished["a"].reason is FinishReason.ERROR
    assert "forbidden" in harness.finished["a"].error
    assert harness.engine.blocks.num_free_blocks == 64


@pytest.mark.parametrize("error", [OverflowError, ZeroDivisionError])
@pytest.mark.parametrize("num_steps", [1, 4])
def test_beams_that_cannot_be_scored_end_only_their_own_request(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch, error: type[ArithmeticError], num_steps: int
) -> None:
    def beams(harness: Any) -> None:
        for name in ("broken", "other"):
            harness.add(name, [1] * 6, n=2, use_beam_search=True, temperature=1.0, max_tokens=8)

    plain, harness = make_engine(), make_engine()
    beams(plain)
    plain.run()
    beams(harness)
    harness.add("plain", [2] * 5, max_tokens=8)
    broken, advance = harness.engine._committer.groups["broken"].beams, BeamSearch.advance
    calls = iter(range(100))

    def fail(search: BeamSearch, *arguments: Any, **keywords: Any) -> Any:
        if search is broken and next(calls) == num_steps - 1:
            raise error
        return advance(search, *arguments, **keywords)

    monkeypatch.setattr(BeamSearch, "advance", fail)
    harness.run()
    assert harness.finished["broken"].reason is FinishReason.ERROR
    assert harness.finished["plain"].reason is FinishReason.LENGTH
    assert [harness.tokens["other", index] for index in (0, 1)] == [plain.tokens["other", index] for index in (0, 1)]
    assert harness.engine.blocks.num_free_blocks == 64


def test_a_result_of_the_wrong_size_is_an_error(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("a", [1])
    step = harness.engine.scheduler.schedule(0.0)
    result = harness.executor.execute(step.plan)
    with pytest.raises(ValueError, match="zip"):
        harness.engine._committer.commit(step, type(result)(()), 0.0)
