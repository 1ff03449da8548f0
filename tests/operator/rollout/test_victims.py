from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.observed import PodView, RevisionView
from octavo_operator.rollout.census import take_census
from octavo_operator.rollout.drain import DrainRules
from octavo_operator.rollout.strategy import Strategy, StrategyDecision
from octavo_operator.rollout.victims import Goal, choose_victims

Make = Callable[..., PodView]
Chosen = Callable[..., set[str]]

SURGE = StrategyDecision(Strategy.SURGE, 1, 0, "")
IN_PLACE = StrategyDecision(Strategy.IN_PLACE, 0, 1, "")


@pytest.fixture
def chosen(now: float) -> Chosen:
    def chosen(desired: int, strategy: StrategyDecision, *revisions: RevisionView, **fields: Any) -> set[str]:
        rules = DrainRules(now)
        wanted = fields.pop("wanted", {"b": desired} if desired else {})
        goal = Goal(
            "b", "a", desired, strategy, fields.pop("paused", False), frozenset(fields.pop("requested", ())), wanted
        )
        return set(choose_victims(take_census(revisions, rules), goal, rules))

    return chosen


@pytest.fixture
def a(revision: Callable[..., RevisionView]) -> Callable[..., RevisionView]:
    return lambda *pods, **fields: revision("a", fields.pop("replicas", len(pods)), *pods, **fields)


@pytest.fixture
def b(revision: Callable[..., RevisionView]) -> Callable[..., RevisionView]:
    return lambda *pods, **fields: revision("b", fields.pop("replicas", len(pods)), *pods, number=2, **fields)


def test_with_surge_no_old_pod_goes_before_a_new_one_serves(
    chosen: Chosen, a: Any, b: Any, pod: Make, starting: Make
) -> None:
    assert chosen(2, SURGE, a(pod("x"), pod("y")), b(starting("z"))) == set()
    assert len(chosen(2, SURGE, a(pod("x"), pod("y")), b(pod("z")))) == 1


def test_in_place_one_old_pod_goes_at_a_time(chosen: Chosen, a: Any, b: Any, pod: Make, draining: Make) -> None:
    assert chosen(3, IN_PLACE, a(pod("x", load=2), pod("y", load=1), pod("z", load=5)), b()) == {"y"}
    assert chosen(3, IN_PLACE, a(pod("x"), draining("y"), pod("z")), b()) == {"y"}
    assert chosen(3, IN_PLACE, a(pod("x"), pod("z")), b()) == set()


def test_a_draining_pod_stays_the_victim_although_another_became_idle(
    chosen: Chosen, a: Any, b: Any, pod: Make, draining: Make
) -> None:
    assert chosen(3, IN_PLACE, a(pod("x", load=0), draining("y", load=9), pod("z")), b()) == {"y"}


def test_when_another_pod_dies_the_draining_one_is_taken_back(
    chosen: Chosen, a: Any, b: Any, draining: Make, starting: Make, pod: Make
) -> None:
    crashed = starting("x")
    assert chosen(3, IN_PLACE, a(crashed, draining("y"), pod("z")), b()) == {"x"}


def test_old_pods_that_serve_nothing_go_at_once(
    chosen: Chosen, a: Any, b: Any, pod: Make, pending: Make, starting: Make
) -> None:
    assert chosen(3, SURGE, a(pod("x"), pending("y"), starting("z")), b()) == {"y", "z"}


def test_when_all_old_pods_lose_readiness_at_once_most_are_left_alone(
    chosen: Chosen, a: Any, b: Any, pod: Make
) -> None:
    flapping = [pod(name, ready=False, load=1) for name in "xyz"]
    assert len(chosen(3, IN_PLACE, a(*flapping), b())) == 1
    assert chosen(3, SURGE, a(*flapping), b()) == set()


def test_of_the_old_revisions_the_stable_one_goes_last(
    chosen: Chosen, a: Any, b: Any, pod: Make, revision: Any
) -> None:
    other = revision("c", 1, pod("c1", load=9), number=3)
    assert chosen(2, SURGE, a(pod("a1", load=0)), other, b(pod("b1"))) == {"c1"}


def test_once_all_new_pods_have_their_place_the_old_ones_serve_until_they_do(
    chosen: Chosen, a: Any, b: Any, pod: Make, starting: Make
) -> None:
    assert chosen(1, IN_PLACE, a(pod("x"), pod("y")), b(starting("z"))) == {"x"}  # two serve, one is promised
    assert chosen(1, IN_PLACE, a(pod("x")), b(starting("z"))) == set()


def test_an_old_pod_makes_way_for_a_new_one_that_finds_no_node(
    chosen: Chosen, a: Any, b: Any, pod: Make, pending: Make
) -> None:
    assert len(chosen(2, IN_PLACE, a(pod("x"), pod("y")), b(pending("z")))) == 1


def test_a_full_cluster_still_rolls_although_not_all_wanted_pods_fit(
    chosen: Chosen, a: Any, b: Any, pod: Make, pending: Make
) -> None:
    assert chosen(5, IN_PLACE, a(pod("x"), pod("y")), b(pending("1"), pending("2"), pending("3"))) != set()


def test_scale_down_takes_pending_then_draining_then_the_least_busy(
    chosen: Chosen, b: Any, pod: Make, pending: Make, draining: Make
) -> None:
    pods = [pod("x", load=3), pod("y", load=1), draining("z"), pending("w")]
    assert chosen(3, SURGE, b(*pods)) == {"w"}
    assert chosen(2, SURGE, b(*pods)) == {"w", "z"}
    assert chosen(1, SURGE, b(*pods)) == {"w", "z", "y"}


def test_scale_down_in_the_middle_of_a_rollout_takes_old_pods_first(chosen: Chosen, a: Any, b: Any, pod: Make) -> None:
    assert chosen(2, SURGE, a(pod("x"), pod("y")), b(pod("z"), pod("w"))) == {"x", "y"}


def test_suspended_all_go(chosen: Chosen, a: Any, b: Any, pod: Make, starting: Make) -> None:
    assert chosen(0, SURGE, a(pod("x")), b(pod("y"), starting("z"))) == {"x", "y", "z"}


def test_paused_no_old_pod_goes_but_surplus_does(chosen: Chosen, a: Any, b: Any, pod: Make, starting: Make) -> None:
    mix = {"a": 2, "b": 1}
    assert chosen(3, IN_PLACE, a(pod("x"), starting("y")), b(pod("z")), paused=True, wanted=mix) == set()
    assert chosen(2, IN_PLACE, a(pod("x"), starting("y")), b(pod("z")), paused=True, wanted={"a": 1, "b": 1}) == {"y"}


def test_a_pod_to_be_replaced_goes_when_another_serves_in_its_place(
    chosen: Chosen, b: Any, pod: Make, starting: Make
) -> None:
    wanted = {"b": 3}
    assert chosen(2, SURGE, b(pod("x"), pod("y")), requested=["x"], wanted=wanted) == set()
    assert chosen(2, SURGE, b(pod("x"), pod("y"), starting("z")), requested=["x"], wanted=wanted) == set()
    assert chosen(2, SURGE, b(pod("x", load=9), pod("y"), pod("z")), requested=["x"], wanted=wanted) == {"x"}
    assert chosen(2, IN_PLACE, b(pod("x", load=9), pod("y")), requested=["x"], wanted=wanted) == {"x"}


def test_pods_that_the_replica_set_already_takes_are_not_counted_on(
    chosen: Chosen, a: Any, b: Any, pod: Make, draining: Make
) -> None:
    going = a(pod("x"), draining("y"), replicas=1)
    assert chosen(3, IN_PLACE, going, b(pod("z"))) == set()
    assert chosen(2, IN_PLACE, going, b(pod("z"))) == {"x"}
