from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.observed import PodView, RevisionView
from octavo_operator.rollout.drain import DrainSettings
from octavo_operator.rollout.planner import RolloutInput, RolloutPlan, plan
from octavo_operator.rollout.strategy import Strategy, StrategyDecision

Make = Callable[..., PodView]
Revision = Callable[..., RevisionView]
SURGE = StrategyDecision(Strategy.SURGE, 1, 0, "")
IN_PLACE = StrategyDecision(Strategy.IN_PLACE, 0, 1, "")


@pytest.fixture
def planned(now: float) -> Callable[..., RolloutPlan]:
    def planned(desired: int, strategy: StrategyDecision, *revisions: RevisionView, **fields: Any) -> RolloutPlan:
        defaults: dict[str, Any] = {"target": "b", "stable": "a", "drain": DrainSettings(10, 300)}
        return plan(
            RolloutInput(now=now, desired=desired, strategy=strategy, revisions=revisions, **(defaults | fields))
        )

    return planned


Planned = Callable[..., RolloutPlan]


def test_the_first_rollout_makes_all_pods(planned: Planned, revision: Revision) -> None:
    first = planned(2, SURGE, revision("b", None), stable=None)
    assert first.replicas == {"b": 2}
    assert not first.done


def test_when_all_is_well_nothing_is_done(planned: Planned, revision: Revision, pod: Make) -> None:
    calm = planned(2, SURGE, revision("b", 2, pod("x"), pod("y")))
    assert (calm.replicas, calm.drain, calm.undrain, calm.delete, calm.release) == ({"b": 2}, (), (), (), ())
    assert calm.done
    assert calm.recheck_seconds is None


def test_an_old_pod_is_marked_first_and_goes_only_when_the_mark_was_seen(
    planned: Planned, revision: Revision, pod: Make, draining: Make
) -> None:
    new = revision("b", 1, pod("n"))
    first = planned(1, SURGE, revision("a", 1, pod("o")), new)
    assert (first.drain, first.replicas["a"]) == (("o",), 1)
    second = planned(1, SURGE, revision("a", 1, draining("o")), new)
    assert (second.drain, second.replicas["a"]) == ((), 0)
    third = planned(1, SURGE, revision("a", 0, draining("o", terminating=True)), new)
    assert not third.done
    assert planned(1, SURGE, revision("a", 0), new).done


def test_even_a_pod_that_serves_nothing_is_marked_before_it_goes(
    planned: Planned, revision: Revision, pod: Make, starting: Make, draining: Make
) -> None:
    new = revision("b", 0)
    first = planned(2, SURGE, revision("a", 2, pod("o"), starting("l")), new)
    assert (first.drain, first.replicas["a"]) == (("l",), 2)
    second = planned(2, SURGE, revision("a", 2, pod("o"), draining("l", since=9_999, runtime_phase="Loading")), new)
    assert second.replicas["a"] == 1


def test_a_busy_pod_is_waited_for_until_its_deadline(
    planned: Planned, revision: Revision, pod: Make, draining: Make
) -> None:
    new = revision("b", 1, pod("n"))
    busy = planned(1, SURGE, revision("a", 1, draining("o", since=9_970, load=3)), new)
    assert (busy.replicas["a"], busy.recheck_seconds) == (1, 281)
    assert "Draining o (3 requests)." in busy.text
    late = planned(1, SURGE, revision("a", 1, draining("o", since=9_600, load=3)), new)
    assert late.replicas["a"] == 0


def test_going_back_takes_the_marks_off(planned: Planned, revision: Revision, pod: Make, draining: Make) -> None:
    back = planned(2, SURGE, revision("a", 2, pod("x"), draining("y")), revision("b", 1, pod("n")), target="a")
    assert back.undrain == ("y",)
    assert back.drain == ()  # the promise of two does not yet hold without n
    assert back.replicas == {"a": 2, "b": 1}


def test_a_mark_stays_on_a_pod_that_the_replica_set_is_about_to_delete(
    planned: Planned, revision: Revision, pod: Make, draining: Make
) -> None:
    back = planned(2, SURGE, revision("a", 1, pod("x"), draining("y")), target="a")
    assert back.undrain == ()
    assert back.replicas["a"] == 2


def test_a_half_mark_is_mended(planned: Planned, revision: Revision, pod: Make, draining: Make) -> None:
    assert planned(1, SURGE, revision("b", 1, pod("x", routed=False))).undrain == ("x",)
    old = revision("a", 1, draining("o", routed=True))
    assert planned(1, SURGE, old, revision("b", 1, pod("n"))).drain == ("o",)


def test_of_two_draining_pods_the_one_that_is_done_is_marked_apart_and_goes_first(
    planned: Planned, revision: Revision, pod: Make, draining: Make
) -> None:
    pods = (pod("x"), draining("done", load=0), draining("busy", load=2))
    first = planned(1, SURGE, revision("b", 3, *pods))
    assert (first.release, first.replicas) == (("done",), {"b": 3})
    second = planned(1, SURGE, revision("b", 3, *pods), released=frozenset({"done"}))
    assert (second.release, second.replicas) == ((), {"b": 2})


def test_when_both_are_done_no_second_mark_is_needed(
    planned: Planned, revision: Revision, pod: Make, draining: Make
) -> None:
    both = planned(1, SURGE, revision("b", 3, pod("x"), draining("y"), draining("z")))
    assert (both.release, both.replicas) == ((), {"b": 1})


def test_suspended_all_pods_drain_and_no_deployment_is_made(planned: Planned, revision: Revision, pod: Make) -> None:
    away = planned(0, SURGE, revision("a", 1, pod("x")), revision("b", None))
    assert (away.drain, away.replicas) == (("x",), {"a": 1})
    assert not away.done
    assert planned(0, SURGE, revision("b", 0)).done


def test_a_finished_pod_object_does_not_count(planned: Planned, revision: Revision, pod: Make) -> None:
    evicted = pod("evicted", phase="Failed", ready=False)
    assert planned(1, SURGE, revision("b", 1, pod("x"), evicted)).done


def test_paused_nothing_moves_but_the_number_does(planned: Planned, revision: Revision, pod: Make) -> None:
    mix = (revision("a", 2, pod("x"), pod("y")), revision("b", 1, pod("n")))
    still = planned(3, SURGE, *mix, paused=True)
    assert (still.replicas, still.drain) == ({"a": 2, "b": 1}, ())
    assert still.text == "Paused: 1 of 3 wanted pods are of the new revision."
    more = planned(4, SURGE, *mix, paused=True)
    assert more.replicas == {"a": 3, "b": 1}
    fewer = planned(2, SURGE, *mix, paused=True)
    assert len(fewer.drain) == 1
    assert fewer.drain[0] in ("x", "y")


def test_deployments_without_use_are_named(planned: Planned, revision: Revision, pod: Make) -> None:
    revisions = (
        revision("a", 0),
        revision("old", 0),
        revision("gone", None),
        revision("leaving", 0, pod("l", terminating=True)),
        revision("b", 1, pod("x")),
    )
    assert planned(1, SURGE, *revisions).obsolete == ("old",)


def test_blocked_when_new_pods_find_no_room_and_no_old_one_may_go(
    planned: Planned, revision: Revision, pod: Make, pending: Make
) -> None:
    stuck = planned(1, SURGE, revision("a", 1, pod("x")), revision("b", 1, pending("n")))
    assert stuck.blocked
    assert "until there is room" in stuck.text
    moving = planned(1, IN_PLACE, revision("a", 1, pod("x")), revision("b", 1, pending("n")))
    assert not moving.blocked


def test_a_quota_that_refuses_pods_blocks_too(planned: Planned, revision: Revision, pod: Make) -> None:
    refused = revision("b", 1, create_error="exceeded quota")
    assert planned(1, SURGE, revision("a", 1, pod("x")), refused).blocked


def test_a_new_unscheduled_pod_is_looked_at_again_when_it_counts_as_stuck(
    planned: Planned, revision: Revision, pod: Make, pending: Make
) -> None:
    young = pending("n", created_at=9_990)
    assert planned(1, SURGE, revision("a", 1, pod("x")), revision("b", 1, young)).recheck_seconds == 20


def test_a_drained_pod_that_the_replica_set_would_not_choose_is_deleted_by_hand(
    planned: Planned, revision: Revision, draining: Make, pending: Make
) -> None:
    asked = draining("asked", since=9_000)
    replaced = planned(1, IN_PLACE, revision("b", 2, asked, pending("w")), requested=frozenset({"asked"}))
    assert (replaced.delete, replaced.replicas) == (("asked",), {"b": 1})


def test_pods_that_terminate_on_a_lost_node_hold_nothing_up(planned: Planned, revision: Revision, pod: Make) -> None:
    dead = pod("dead", node="lost", terminating=True)
    rest = revision("b", 0)
    waiting = planned(1, IN_PLACE, revision("a", 0, dead), rest)
    assert waiting.replicas["b"] == 0
    going_on = planned(1, IN_PLACE, revision("a", 0, dead), rest, lost_nodes=frozenset({"lost"}))
    assert going_on.replicas["b"] == 1
    assert planned(1, IN_PLACE, revision("b", 1, dead, pod("x")), lost_nodes=frozenset({"lost"})).done
