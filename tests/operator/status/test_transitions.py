"""Events are posted when the reason changes, and not for every percent."""

from typing import Any

from octavo_operator.status.judge import judge
from octavo_operator.status.report import report
from octavo_operator.status.situation import RolloutFacts, Situation
from octavo_operator.status.transitions import StatusEvent, status_events


def status_of(situation: Situation) -> dict[str, Any]:
    return report(situation, judge(situation))


def loading(build: Any, done: int) -> dict[str, Any]:
    runtime = build.runtime("Loading", progress={"done_bytes": done, "total_bytes": 100})
    return status_of(build.situation(build.revision(build.new, build.pod(ready=False, runtime=runtime))))


def test_becoming_ready_is_a_normal_event(build: Any) -> None:
    [event] = status_events(loading(build, 99), status_of(build.situation()))
    assert event == StatusEvent(False, "Serving", f"1 of 1 replicas serve revision {build.new}.")


def test_trouble_is_a_warning(build: Any) -> None:
    [event] = status_events(
        status_of(build.situation()), status_of(build.situation(build.revision(build.new, build.crashed())))
    )
    assert (event.warning, event.reason) == (True, "CrashLoop")


def test_progress_is_no_warning_and_told_once(build: Any) -> None:
    [event] = status_events({}, loading(build, 10))
    assert (event.warning, event.reason) == (False, "Loading")
    assert status_events(loading(build, 10), loading(build, 20)) == ()


def test_nothing_changed_is_no_event(build: Any) -> None:
    assert status_events(status_of(build.situation()), status_of(build.situation())) == ()
    assert status_events({}, {}) == ()


def test_a_rollback_is_told_once(build: Any) -> None:
    rollback = {"from": build.new, "to": build.old, "reason": "CrashLoop", "at": "2027-01-15T07:00:00Z"}
    back = status_of(build.situation(rollout=RolloutFacts(last_rollback=rollback)))
    assert status_events(status_of(build.situation()), back) == (
        StatusEvent(True, "RolledBack", f"Back from revision {build.new} to {build.old}: CrashLoop."),
    )
    assert status_events(back, back) == ()
