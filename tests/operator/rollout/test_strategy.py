from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.api import Rollout
from octavo_operator.observed import PodView
from octavo_operator.rollout.capacity import Headroom
from octavo_operator.rollout.strategy import Ongoing, Strategy, StrategyDecision, decide

Make = Callable[..., PodView]
NOW = 10_000.0


def rollout(**fields: Any) -> Rollout:
    return Rollout(**fields)


def room(on_nodes: int, in_quota: int | None = None) -> Headroom:
    return Headroom(on_nodes, in_quota, "no node has 1 nvidia.com/gpu free (at most 0)")


def numbers(decision: StrategyDecision) -> tuple[Strategy, int, int]:
    return decision.strategy, decision.max_surge, decision.max_unavailable


def test_auto_surges_when_one_more_fits(pod: Make) -> None:
    assert numbers(decide(rollout(), room(1), 1, [pod()])) == (Strategy.SURGE, 1, 0)


def test_auto_replaces_in_place_when_none_fits_and_says_why(pod: Make) -> None:
    decision = decide(rollout(), room(0), 1, [pod()])
    assert numbers(decision) == (Strategy.IN_PLACE, 0, 1)
    assert decision.reason == "no room for one more replica: no node has 1 nvidia.com/gpu free (at most 0)"


def test_room_that_the_wanted_pods_still_need_is_not_spare(pod: Make) -> None:
    assert decide(rollout(), room(1), 2, [pod()]).strategy is Strategy.IN_PLACE
    assert decide(rollout(), room(2), 2, [pod()]).strategy is Strategy.SURGE


def test_the_decision_stays_when_the_surge_pod_took_the_room(pod: Make, pending: Make) -> None:
    before = decide(rollout(), room(1), 2, [pod("a"), pod("b")])
    unscheduled = decide(rollout(), room(1), 2, [pod("a"), pod("b"), pending("c")])
    scheduled = decide(rollout(), room(0), 2, [pod("a"), pod("b"), pod("c", ready=False)])
    leaving = decide(rollout(), room(0), 2, [pod("a", terminating=True), pod("b"), pod("c")])
    gone = decide(rollout(), room(1), 2, [pod("b"), pod("c")])
    assert before == unscheduled == scheduled == leaving == gone


def test_the_decision_stays_in_place_while_a_place_is_free_for_a_moment(pod: Make) -> None:
    assert decide(rollout(), room(1), 2, [pod("a")]).strategy is Strategy.IN_PLACE


def test_a_surge_whose_room_was_taken_goes_on_in_place(pod: Make, pending: Make) -> None:
    assert decide(rollout(), room(0), 2, [pod("a"), pod("b"), pending("c")]).strategy is Strategy.IN_PLACE


def test_in_a_quota_a_pod_takes_room_as_soon_as_it_exists(pod: Make, pending: Make) -> None:
    assert decide(rollout(), room(5, in_quota=0), 2, [pod("a"), pod("b"), pending("c")]).strategy is Strategy.SURGE
    assert decide(rollout(), room(5, in_quota=0), 2, [pod("a"), pod("b")]).strategy is Strategy.IN_PLACE


def test_pods_on_lost_nodes_and_finished_pods_hold_no_room(pod: Make) -> None:
    pods = [pod("a"), pod("b", node="lost", terminating=True), pod("c", phase="Failed")]
    assert decide(rollout(), room(0), 1, pods, lost_nodes={"lost"}).strategy is Strategy.IN_PLACE
    assert decide(rollout(), room(0), 1, pods).strategy is Strategy.SURGE


def test_explicit_numbers_are_respected(pod: Make) -> None:
    assert numbers(decide(rollout(max_surge=3, max_unavailable=2), room(9), 1, [pod()])) == (Strategy.SURGE, 3, 2)
    assert numbers(decide(rollout(max_surge=3), room(2), 1, [pod()])) == (Strategy.SURGE, 2, 0)
    assert numbers(decide(rollout(max_surge=0), room(9), 1, [pod()])) == (Strategy.IN_PLACE, 0, 1)
    assert numbers(decide(rollout(max_unavailable=2), room(0), 1, [pod()])) == (Strategy.IN_PLACE, 0, 2)


def test_auto_waits_for_room_when_nothing_may_be_unavailable(pod: Make) -> None:
    decision = decide(rollout(max_unavailable=0), room(0), 1, [pod()])
    assert numbers(decision) == (Strategy.SURGE, 1, 0)
    assert "maxUnavailable is 0" in decision.reason


def test_surge_by_hand_surges_even_without_room_and_says_so(pod: Make) -> None:
    decision = decide(rollout(strategy="Surge"), room(0), 1, [pod()])
    assert numbers(decision) == (Strategy.SURGE, 1, 0)
    assert "there is no room" in decision.reason


@pytest.mark.parametrize("strategy", ["Surge", "InPlace"])
def test_a_rollout_can_always_move(strategy: str, pod: Make) -> None:
    decision = decide(rollout(strategy=strategy, max_surge=0, max_unavailable=0), room(9), 1, [pod()])
    assert decision.max_surge + decision.max_unavailable >= 1


def test_recreate_may_stop_all(pod: Make) -> None:
    assert numbers(decide(rollout(strategy="Recreate"), room(9), 3, [pod()])) == (Strategy.RECREATE, 0, 3)


def test_a_surge_goes_on_while_the_nodes_are_seen_before_the_pods(pod: Make) -> None:
    seen = [pod("a"), pod("b")]  # the surge pod, which holds the room, is not seen yet
    ongoing = Ongoing(Strategy.SURGE, NOW, [2, 1])
    assert decide(rollout(), room(0), 2, seen, ongoing=ongoing).strategy is Strategy.SURGE


def test_a_surge_ends_when_its_pod_finds_no_node_for_a_while(pod: Make, pending: Make) -> None:
    waiting = [pod("a"), pod("b"), pending("c", created_at=NOW - 10)]
    for later, strategy in ((0, Strategy.SURGE), (20, Strategy.IN_PLACE)):
        ongoing = Ongoing(Strategy.SURGE, NOW + later, [2, 1])
        assert decide(rollout(), room(0), 2, waiting, ongoing=ongoing).strategy is strategy


def test_in_place_goes_on_while_a_pod_that_leaves_is_still_seen(pod: Make) -> None:
    leaving = [pod("a", terminating=True), pod("b")]
    ongoing = Ongoing(Strategy.IN_PLACE, NOW, [1, 1])
    assert decide(rollout(), room(1), 2, leaving, ongoing=ongoing).strategy is Strategy.IN_PLACE
    calm = [pod("a"), pod("b")]
    assert decide(rollout(), room(1), 2, calm, ongoing=ongoing).strategy is Strategy.SURGE


def test_a_node_cordoned_in_the_middle_of_an_in_place_rollout_makes_no_pod_too_many(pod: Make) -> None:
    cordoned = Headroom(0, None, "no node has 1 nvidia.com/gpu free (at most 0)", instead=False)
    ongoing = Ongoing(Strategy.IN_PLACE, NOW, [1, 1])
    leaving = [pod("old", terminating=True), pod("new")]
    assert numbers(decide(rollout(), cordoned, 2, leaving, ongoing=ongoing)) == (Strategy.IN_PLACE, 0, 0)
    assert numbers(decide(rollout(), room(0), 2, leaving, ongoing=ongoing)) == (Strategy.IN_PLACE, 0, 1)


def test_a_new_rollout_looks_afresh(pod: Make) -> None:
    ongoing = Ongoing(Strategy.SURGE, NOW, [2, 0])
    assert decide(rollout(), room(0), 2, [pod("a"), pod("b")], ongoing=ongoing).strategy is Strategy.IN_PLACE


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (rollout(), (Strategy.SURGE, 1, 0)),
        (rollout(max_unavailable=1), (Strategy.SURGE, 1, 0)),
        (rollout(max_surge=0), (Strategy.IN_PLACE, 0, 0)),
        (rollout(strategy="InPlace"), (Strategy.IN_PLACE, 0, 0)),
    ],
)
def test_no_pod_is_taken_away_for_one_that_would_find_no_room_even_then(
    spec: Rollout, expected: tuple[Strategy, int, int], pod: Make
) -> None:
    nowhere = Headroom(0, None, "no node has 8 nvidia.com/gpu free (at most 0)", instead=False)
    decision = decide(spec, nowhere, 1, [pod()])
    assert numbers(decision) == expected
    assert decision.reason.endswith("in the place of the present ones: no node has 8 nvidia.com/gpu free (at most 0)")
    assert decision.is_held is (expected[0] is Strategy.IN_PLACE)


def test_a_surge_never_speaks_of_room_for_a_pod_that_no_node_could_take(pod: Make, pending: Make) -> None:
    small = Headroom(
        0, None, "no node has 900Gi memory free (at most 20Gi)", impossible="It is too large.", instead=False
    )
    rolling = Ongoing(Strategy.SURGE, NOW, (1, 1))
    decision = decide(rollout(), small, 1, [pod("a"), pending("b")], ongoing=rolling)
    assert decision.max_unavailable == 0
    assert decision.reason == (
        "no room for a new replica, not even in the place of the present ones: "
        "no node has 900Gi memory free (at most 20Gi)"
    )
