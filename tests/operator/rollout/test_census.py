from collections.abc import Callable

from octavo_operator.observed import PodView, RevisionView
from octavo_operator.rollout.census import in_all, take_census
from octavo_operator.rollout.drain import DrainRules

MakePod = Callable[..., PodView]
MakeRevision = Callable[..., RevisionView]


def test_pods_about_to_come_hold_room_already(now: float, pod: MakePod, revision: MakeRevision) -> None:
    (crew,) = take_census([revision("a", 3, pod())], DrainRules(now))
    assert (crew.size, in_all((crew,))) == (3, 3)


def test_terminating_pods_hold_room_until_they_are_gone(now: float, pod: MakePod, revision: MakeRevision) -> None:
    (crew,) = take_census([revision("a", 1, pod("x"), pod("y", terminating=True))], DrainRules(now))
    assert (crew.size, in_all((crew,))) == (1, 2)
    assert not crew.is_gone


def test_a_pod_that_terminates_on_a_lost_node_is_gone(now: float, pod: MakePod, revision: MakeRevision) -> None:
    rules = DrainRules(now, lost_nodes=frozenset({"n1"}))
    (crew,) = take_census([revision("a", 0, pod(terminating=True))], rules)
    assert crew.is_gone


def test_pods_beyond_the_replicas_are_as_good_as_gone(
    now: float, pod: MakePod, draining: MakePod, revision: MakeRevision
) -> None:
    (crew,) = take_census([revision("a", 1, pod("stays"), draining("goes"))], DrainRules(now))
    assert [pod.name for pod in crew.active] == ["stays"]
    assert [pod.name for pod in crew.leaving] == ["goes"]


def test_without_deployment_all_pods_go(now: float, pod: MakePod, revision: MakeRevision) -> None:
    (crew,) = take_census([revision("a", None, pod("x"))], DrainRules(now))
    assert (crew.has_deployment, crew.active, len(crew.leaving)) == (False, (), 1)


def test_pods_that_a_quota_refuses_are_stuck(now: float, pod: MakePod, revision: MakeRevision) -> None:
    (crew,) = take_census([revision("a", 3, pod(), create_error="exceeded quota")], DrainRules(now))
    assert crew.stuck == 2
