from typing import Any

import pytest

from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.autoscaling.targets import Target, agrees, period, targets
from octavo_operator.observed import PodView, RuntimeView


def pod(name: str = "p", **fields: Any) -> PodView:
    defaults: dict[str, Any] = {
        "uid": f"uid-{name}",
        "revision": "a",
        "created_at": 0.0,
        "phase": "Running",
        "ready": True,
        "routed": True,
        "drain_started_at": None,
        "terminating": False,
        "ip": "10.0.0.1",
    }
    return PodView(name=name, **(defaults | fields))


def view(phase: str = "Ready", draining: bool = False, in_flight: int = 0) -> RuntimeView:
    return RuntimeView(at=1.0, phase=phase, in_flight=in_flight, status={"draining": draining})


def test_pods_that_can_answer_are_asked() -> None:
    pods = [pod("a"), pod("b", ip=""), pod("c", phase="Pending"), pod("d", terminating=True)]
    assert [target.name for target in targets(pods, auto=True, tls=False, admin_key="k")] == ["a"]


def test_a_target_knows_what_its_pod_does() -> None:
    (target,) = targets([pod(ready=False, drain_started_at=5.0)], auto=True, tls=True, admin_key="secret")
    assert target == Target(
        "uid-p", "p", "10.0.0.1", tls=True, starting=True, draining=True, auto=True, admin_key="secret"
    )
    assert "secret" not in repr(target)


@pytest.mark.parametrize(
    ("host", "tls", "url"),
    [("10.0.0.1", False, "http://10.0.0.1:8000/status"), ("fd00::1", True, "https://[fd00::1]:8000/status")],
)
def test_urls(host: str, tls: bool, url: str) -> None:
    assert Target("u", "n", host, tls=tls).url("/status") == url


def test_a_pod_that_somebody_waits_for_is_asked_every_second() -> None:
    assert period(Target("u", "n", "h", starting=True), None, None, failures=0) == 1
    assert period(Target("u", "n", "h", draining=True), view(in_flight=3), None, failures=0) == 1


def test_a_starting_pod_that_does_not_answer_is_asked_less_and_less() -> None:
    waits = [period(Target("u", "n", "h", starting=True), None, None, failures) for failures in range(1, 6)]
    assert waits == [2, 4, 5, 5, 5]


def test_a_load_that_scales_is_read_often_only_while_there_is_one() -> None:
    target = Target("u", "n", "h", auto=True)
    assert period(target, view(in_flight=1), None, failures=0) == 2
    assert period(target, view(), Sample(waiting=0, running=1, kv_usage=0.1), failures=0) == 2
    assert period(target, view(), Sample(waiting=0, running=0, kv_usage=0.1), failures=0) == 15
    assert period(target, view(), Sample(waiting=0, running=0, kv_usage=0.1), failures=1) == 2


def test_other_pods_are_asked_rarely() -> None:
    assert period(Target("u", "n", "h"), view(in_flight=1), None, failures=0) == 15
    assert period(Target("u", "n", "h"), view(), None, failures=0) == 60


def test_a_runtime_agrees_when_it_drains_exactly_if_it_shall() -> None:
    on = Target("u", "n", "h", draining=True, admin_key="k")
    off = Target("u", "n", "h", admin_key="k")
    assert not agrees(on, view(draining=False))
    assert agrees(on, view("Draining", draining=True))
    assert not agrees(off, view("Draining", draining=True))
    assert period(off, view("Draining", draining=True), None, failures=0) == 1


def test_nothing_is_to_be_agreed_with_a_runtime_that_loads_or_cannot_be_told() -> None:
    on = Target("u", "n", "h", draining=True, admin_key="k")
    assert agrees(on, None)
    assert agrees(on, view("Loading"))
    assert agrees(Target("u", "n", "h", draining=True), view())
