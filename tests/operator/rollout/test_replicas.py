from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.observed import PodView, RevisionView
from octavo_operator.rollout import replicas
from octavo_operator.rollout.census import take_census
from octavo_operator.rollout.drain import DrainRules
from octavo_operator.rollout.strategy import Strategy, StrategyDecision
from octavo_operator.rollout.victims import Goal

Make = Callable[..., PodView]
Revision = Callable[..., RevisionView]
NOTHING: frozenset[str] = frozenset()


@pytest.fixture
def moved(now: float) -> Callable[..., dict[str, int]]:
    """New replicas. `surge`: pods beyond the wanted ones."""

    def moved(desired: int, surge: int, *revisions: RevisionView, **fields: Any) -> dict[str, int]:
        kind = Strategy.RECREATE if fields.pop("recreate", False) else Strategy.SURGE
        strategy = StrategyDecision(kind, surge, 1, "")
        wanted = fields.pop("wanted", {"b": desired} if desired else {})
        goal = Goal("b", "a", desired, strategy, False, NOTHING, wanted)
        rules = DrainRules(now)
        crews = take_census(revisions, rules)
        return dict(replicas.setpoints(crews, goal, tuple(fields.pop("victims", ())), rules).replicas)

    return moved


def test_new_pods_come_as_far_as_there_is_room(moved: Any, revision: Revision, pod: Make) -> None:
    old = revision("a", 2, pod("x"), pod("y"))
    assert moved(2, 0, old, revision("b", None)) == {"a": 2}
    assert moved(2, 1, old, revision("b", None)) == {"a": 2, "b": 1}
    assert moved(2, 9, old, revision("b", None)) == {"a": 2, "b": 2}


def test_a_pod_whose_object_is_not_gone_holds_its_place(moved: Any, revision: Revision, pod: Make) -> None:
    old = revision("a", 1, pod("x"), pod("y", terminating=True))
    assert moved(2, 0, old, revision("b", 0)) == {"a": 1, "b": 0}
    assert moved(2, 0, revision("a", 1, pod("x")), revision("b", 0)) == {"a": 1, "b": 1}


def test_a_drained_pod_goes_by_one_replica_less(moved: Any, revision: Revision, pod: Make, draining: Make) -> None:
    old = revision("a", 2, pod("x"), draining("y"))
    assert moved(2, 0, old, revision("b", 0), victims=["y"]) == {"a": 1, "b": 0}


def test_a_pod_with_requests_does_not_go(moved: Any, revision: Revision, pod: Make, draining: Make) -> None:
    old = revision("a", 2, pod("x"), draining("y", load=1))
    assert moved(2, 0, old, revision("b", 0), victims=["y"]) == {"a": 2, "b": 0}


def test_pods_on_their_way_are_waited_for_but_not_those_that_a_quota_refuses(
    moved: Any, revision: Revision, pod: Make
) -> None:
    assert moved(2, 0, revision("a", 2, pod("x")), revision("b", 0))["a"] == 2
    assert moved(2, 0, revision("a", 2, pod("x"), create_error="exceeded quota"), revision("b", 0))["a"] == 1
    assert moved(2, 0, revision("b", 2, pod("x"), create_error="exceeded quota"))["b"] == 2


def test_a_pod_that_the_replica_set_was_told_to_take_is_lost_and_holds_its_place(
    moved: Any, revision: Revision, pod: Make, draining: Make
) -> None:
    assert moved(2, 0, revision("b", 1, pod("x"), draining("y"))) == {"b": 1}
    assert moved(2, 1, revision("b", 1, pod("x"), draining("y"))) == {"b": 2}


def test_recreate_waits_until_the_last_old_pod_is_gone(moved: Any, revision: Revision, pod: Make) -> None:
    assert moved(2, 0, revision("a", 0, pod("x", terminating=True)), revision("b", 0), recreate=True)["b"] == 0
    assert moved(2, 0, revision("a", 0), revision("b", 0), recreate=True)["b"] == 2


def test_at_zero_no_deployment_is_made(moved: Any, revision: Revision) -> None:
    assert moved(0, 1, revision("b", None)) == {}


def shares(
    now: float, desired: int, *revisions: RevisionView, stable: str | None = "a", paused: bool = True
) -> dict[str, int]:
    crews = take_census(revisions, DrainRules(now))
    return replicas.wanted(crews, "b", stable, desired, paused, frozenset({"asked"}))


def test_all_replicas_shall_be_of_the_target(now: float, revision: Revision) -> None:
    assert shares(now, 3, revision("a", 2), revision("b", 1), paused=False) == {"b": 3}


def test_paused_the_mix_grows_on_the_stable_revision(now: float, revision: Revision) -> None:
    assert shares(now, 5, revision("a", 2), revision("b", 1)) == {"a": 4, "b": 1}
    assert shares(now, 2, revision("a", 0), revision("b", None)) == {"a": 2}


def test_paused_the_mix_shrinks_where_there_is_most(now: float, revision: Revision) -> None:
    assert shares(now, 2, revision("a", 3), revision("b", 2)) == {"a": 1, "b": 1}


def test_paused_before_the_first_pod_nothing_comes(now: float, revision: Revision) -> None:
    assert shares(now, 2, revision("b", None), stable=None) == {}


def test_a_pod_to_be_replaced_gets_one_more_beside_it(now: float, revision: Revision, pod: Make) -> None:
    assert shares(now, 2, revision("b", 2, pod("asked"), pod("x")), paused=False) == {"b": 3}
    assert shares(now, 0, revision("b", 2, pod("asked"), pod("x")), paused=False) == {}
