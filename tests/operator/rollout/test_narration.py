from collections.abc import Callable
from dataclasses import replace

import pytest

from octavo_operator.observed import PodView
from octavo_operator.rollout.drain import DrainRules
from octavo_operator.rollout.narration import narrate
from octavo_operator.rollout.progress import Progress
from octavo_operator.rollout.strategy import Strategy, StrategyDecision
from octavo_operator.rollout.victims import Goal

Make = Callable[..., PodView]
GOAL = Goal("b", "a", 3, StrategyDecision(Strategy.SURGE, 1, 0, ""), False, frozenset(), {"b": 3})
CALM = Progress(desired=3, pods=3, ready=3, updated=3, updated_ready=3, old=0, draining=0, terminating=0)


@pytest.mark.parametrize(
    ("strategy", "how"),
    [
        (Strategy.SURGE, "New pods first"),
        (Strategy.IN_PLACE, "One pod after the other in place"),
        (Strategy.RECREATE, "All pods at once"),
    ],
)
def test_a_rollout_says_how_it_goes_and_how_far_it_is(now: float, strategy: Strategy, how: str) -> None:
    goal = replace(GOAL, strategy=StrategyDecision(strategy, 1, 0, ""))
    progress = replace(CALM, pods=4, updated=2, updated_ready=1, old=2)
    assert narrate(goal, progress, [], DrainRules(now), blocked=False) == (
        f"{how}: 1 of 3 wanted pods serve the new revision, 2 pods of other revisions left."
    )


def test_when_all_is_well_it_says_so(now: float) -> None:
    assert narrate(GOAL, CALM, [], DrainRules(now), blocked=False) == "All 3 wanted pods serve."


def test_a_scale_up_is_no_rollout(now: float) -> None:
    progress = replace(CALM, updated_ready=1)
    assert narrate(GOAL, progress, [], DrainRules(now), blocked=False) == "1 of 3 wanted pods serve, 3 exist."


def test_draining_pods_are_named_a_few_at_most(now: float, draining: Make) -> None:
    pods = [draining("a", load=1), draining("b", load=2), draining("c", load=None), draining("d")]
    text = narrate(GOAL, CALM, pods, DrainRules(now), blocked=False)
    assert text.endswith("Draining a (1 request), b (2 requests), c and 1 more.")


def test_without_replicas_it_says_what_is_left(now: float) -> None:
    goal = replace(GOAL, desired=0)
    left = replace(CALM, desired=0, pods=1, terminating=1)
    assert narrate(goal, left, [], DrainRules(now), blocked=False).startswith("No replica is wanted; 2 pods left.")
    none = replace(CALM, desired=0, pods=0)
    assert narrate(goal, none, [], DrainRules(now), blocked=False) == "No replica is wanted."


def test_terminating_pods_are_waited_for(now: float) -> None:
    text = narrate(GOAL, replace(CALM, terminating=2, old=2), [], DrainRules(now), blocked=False)
    assert text.endswith("Waiting until 2 pods that are terminating are gone.")


def test_the_text_does_not_change_with_the_clock(now: float, draining: Make) -> None:
    pods = [draining("a", load=1)]
    early = narrate(GOAL, CALM, pods, DrainRules(now), blocked=False)
    assert narrate(GOAL, CALM, pods, DrainRules(now + 5), blocked=False) == early
