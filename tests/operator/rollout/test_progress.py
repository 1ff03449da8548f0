from collections.abc import Callable

from octavo_operator.observed import PodView, RevisionView
from octavo_operator.rollout.census import take_census
from octavo_operator.rollout.drain import DrainRules
from octavo_operator.rollout.progress import Progress, count
from octavo_operator.rollout.strategy import Strategy, StrategyDecision
from octavo_operator.rollout.victims import Goal

Make = Callable[..., PodView]
SURGE = StrategyDecision(Strategy.SURGE, 1, 0, "")


def counted(now: float, desired: int, *revisions: RevisionView) -> Progress:
    rules = DrainRules(now)
    return count(
        take_census(revisions, rules), Goal("b", "a", desired, SURGE, False, frozenset(), {"b": desired}), rules
    )


def test_pods_are_counted_by_what_they_are(
    now: float, pod: Make, starting: Make, draining: Make, revision: Callable[..., RevisionView]
) -> None:
    progress = counted(
        now, 2, revision("a", 1, draining("x"), pod("y", terminating=True)), revision("b", 2, pod("z"), starting("w"))
    )
    assert progress == Progress(
        desired=2, pods=3, ready=1, updated=2, updated_ready=1, old=2, draining=1, terminating=1
    )
    assert not progress.is_complete


def test_old_pods_do_not_make_the_count(now: float, pod: Make, revision: Callable[..., RevisionView]) -> None:
    assert counted(now, 1, revision("b", 1, pod())).is_complete
    assert not counted(now, 1, revision("a", 1, pod("x")), revision("b", 1, pod("y"))).is_complete
    assert not counted(now, 2, revision("a", 1, pod("x")), revision("b", 1, pod("y"))).is_complete
    assert not counted(now, 1, revision("a", 0, pod("x", terminating=True)), revision("b", 1, pod("y"))).is_complete
