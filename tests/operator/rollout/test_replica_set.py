from collections.abc import Callable

import pytest

from octavo_operator.observed import PodView
from octavo_operator.rollout.replica_set import deletion_order, is_stuck, safe_prefix

Make = Callable[..., PodView]


def names(pods: list[PodView]) -> list[str]:
    return [pod.name for pod in pods]


def test_unscheduled_then_pending_then_unready_then_marked_then_ready(pod: Make, pending: Make, draining: Make) -> None:
    pods = [
        pod("ready"),
        pod("marked-ready", drain_started_at=1.0, routed=False),
        pod("unready", ready=False),
        draining("draining"),
        pod("creating", phase="Pending", ready=False),
        pending("unscheduled"),
    ]
    assert names(deletion_order(pods)) == ["unscheduled", "creating", "draining", "unready", "marked-ready", "ready"]


@pytest.mark.parametrize("fields", [{"terminating": True}, {"phase": "Failed"}, {"phase": "Succeeded"}])
def test_pods_that_end_are_not_counted(pod: Make, fields: dict[str, object]) -> None:
    assert deletion_order([pod(**fields)]) == []


def test_the_prefix_stops_at_the_first_pod_that_must_stay(pod: Make, draining: Make) -> None:
    pods = [draining("a"), pod("b", ready=False), draining("c", ready=True)]
    assert names(safe_prefix(pods, {"a", "c"})) == ["a"]


def test_of_equal_pods_the_replica_set_may_take_the_one_that_must_stay(draining: Make) -> None:
    pods = [draining("done"), draining("busy", load=3)]
    assert safe_prefix(pods, {"done"}) == []


def test_a_pod_is_stuck_when_no_node_takes_it_for_a_while(now: float, pending: Make, pod: Make) -> None:
    assert is_stuck(pending(created_at=now - 30), now)
    assert not is_stuck(pending(created_at=now - 29), now)
    assert not is_stuck(pending(created_at=now - 90, scheduled_reason=""), now)
    assert not is_stuck(pod(), now)
