from collections.abc import Callable

import pytest

from octavo_operator.observed import ContainerView, PodView
from octavo_operator.rollout.drain import DrainRules, DrainSettings, Victim

Make = Callable[..., PodView]


@pytest.fixture
def rules(now: float) -> DrainRules:
    return DrainRules(now, DrainSettings(unroute_seconds=10, timeout_seconds=300), frozenset({"lost"}))


def test_a_ready_pod_has_something_to_lose(rules: DrainRules, pod: Make) -> None:
    assert not rules.serves_nothing(pod(load=0))
    assert rules.is_alive(pod())
    assert rules.is_serving(pod())


@pytest.mark.parametrize(
    "fields",
    [
        {"node": "", "ready": False},
        {"phase": "Pending", "ready": False},
        {"node": "lost"},
        {"ready": False, "running_since": None},
        {"ready": False, "runtime_phase": "Loading"},
        {"ready": False, "runtime_phase": "Failed"},
    ],
)
def test_pending_crashed_loading_and_lost_pods_protect_nothing(
    rules: DrainRules, pod: Make, fields: dict[str, object]
) -> None:
    assert rules.serves_nothing(pod(**fields))
    assert rules.is_drained(pod(**fields, routed=False, drain_started_at=9_999.0))
    assert not rules.is_drained(pod(**fields))  # it could begin to serve before it goes
    assert not rules.is_alive(pod(**fields))
    assert not rules.is_serving(pod(**fields))


def test_a_pod_that_lost_readiness_for_a_moment_may_still_answer(rules: DrainRules, pod: Make) -> None:
    flapping = pod(ready=False, load=2)
    assert not rules.serves_nothing(flapping)
    assert rules.is_alive(flapping)
    assert not rules.is_serving(flapping)


@pytest.mark.parametrize(
    "fields", [{"load": None}, {"asked_at": 9_900.0}, {"running_since": 9_999.0, "asked_at": 9_998.0}]
)
def test_a_pod_of_unknown_state_gets_the_benefit_of_the_doubt(
    rules: DrainRules, pod: Make, fields: dict[str, object]
) -> None:
    unknown = pod(ready=False, runtime_phase="Loading", **fields)
    assert not rules.serves_nothing(unknown)
    assert not rules.is_drained(unknown)


def test_an_unmarked_pod_is_never_drained_however_idle(rules: DrainRules, pod: Make) -> None:
    assert not rules.is_drained(pod(load=0))


def test_a_marked_pod_is_drained_when_an_answer_after_the_unrouting_says_so(rules: DrainRules, draining: Make) -> None:
    assert rules.is_drained(draining(since=9_980, load=0, asked_at=9_995))
    assert not rules.is_drained(draining(since=9_980, load=1, asked_at=9_995))


def test_an_answer_from_before_the_unrouting_is_not_believed(rules: DrainRules, draining: Make) -> None:
    assert not rules.is_drained(draining(since=9_980, load=0, asked_at=9_990.5))  # the mark may be a second older


def test_queued_requests_count_as_requests(rules: DrainRules, draining: Make) -> None:
    pod = draining(since=9_980)
    assert pod.runtime is not None
    waiting = type(pod.runtime)(at=9_999, phase="Draining", in_flight=0, waiting=1)
    assert not rules.is_drained(draining(since=9_980, runtime=waiting))


def test_the_deadline_ends_every_drain(rules: DrainRules, draining: Make) -> None:
    assert not rules.is_drained(draining(since=9_690, load=None))
    assert rules.is_drained(draining(since=9_689, load=None))
    assert rules.is_overdue(draining(since=9_689))


def test_a_marked_pod_that_crashed_is_drained(rules: DrainRules, draining: Make) -> None:
    assert rules.is_drained(
        draining(since=9_999, load=None, container=ContainerView(waiting_reason="CrashLoopBackOff"))
    )


def test_the_clock_is_looked_at_again_when_routing_ends_and_at_the_deadline(rules: DrainRules, draining: Make) -> None:
    assert rules.next_change(draining(since=9_995)) == 6
    assert rules.next_change(draining(since=9_980, load=3)) == 291
    assert rules.next_change(draining(since=9_000)) is None


@pytest.mark.parametrize("answer", [{"asked_at": 9_990.0}, {"load": None}])
def test_an_answer_after_the_unrouting_is_looked_for_every_second(
    rules: DrainRules, draining: Make, answer: dict[str, object]
) -> None:
    """It may say what the last one said, and then wakes nobody: an idle pod would stay until its deadline."""
    pod = draining(since=9_980, **({"load": 0} | answer))
    assert not rules.is_drained(pod)
    assert rules.next_change(pod) == 1
    assert rules.is_drained(draining(since=9_980, load=0))


@pytest.mark.parametrize("answer", [{"load": None}, {"load": 0, "asked_at": 9_950.0}, {"load": 3, "asked_at": 9_980.0}])
def test_a_pod_that_no_longer_answers_is_looked_at_now_and_then(
    rules: DrainRules, draining: Make, answer: dict[str, object]
) -> None:
    """Whoever tells that its node is lost may wake others only."""
    assert rules.next_change(draining(since=9_940, **answer)) == 5


def test_the_least_busy_goes_first_and_an_unknown_one_last(rules: DrainRules, pod: Make) -> None:
    pods = [pod("unknown", load=None), pod("busy", load=5), pod("idle", load=1)]
    assert [one.name for one in sorted(pods, key=rules.preference)] == ["idle", "busy", "unknown"]


def test_the_oldest_goes_first_if_asked(now: float, pod: Make) -> None:
    rules = DrainRules(now, DrainSettings(victim=Victim.OLDEST))
    pods = [pod("young", created_at=2.0, load=0), pod("old", created_at=1.0, load=9)]
    assert [one.name for one in sorted(pods, key=rules.preference)] == ["old", "young"]
