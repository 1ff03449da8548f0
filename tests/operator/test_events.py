"""Events about resources."""

import pytest

from octavo_operator import events
from octavo_operator.api import parse
from octavo_operator.events import SILENT_SECONDS, EventRecorder
from octavo_operator.kube_client import Forbidden
from octavo_operator.testing import FakeKube, llm_deployment


async def test_an_event_is_about_its_resource_and_says_who_speaks() -> None:
    kube = FakeKube()
    await EventRecorder(kube, "operator-1", lambda: 1.5).record(
        parse(llm_deployment()), "Serving", "Good.", warning=False
    )
    (event,) = kube.events
    assert event["involvedObject"]["uid"] == "uid-of-default-smollm"
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Serving", "Good.")
    assert (event["reportingComponent"], event["reportingInstance"]) == ("octavo-operator", "operator-1")
    assert (event["eventTime"], event["lastTimestamp"]) == ("1970-01-01T00:00:01.500000Z", "1970-01-01T00:00:01Z")


async def test_the_same_is_said_once_in_a_while() -> None:
    kube, now = FakeKube(), 0.0
    recorder = EventRecorder(kube, "o", lambda: now)
    deployment = parse(llm_deployment())
    for message in ("a", "a", "b"):
        await recorder.record(deployment, "CrashLoop", message, warning=True)
    assert [event["message"] for event in kube.events] == ["a", "b"]
    now = SILENT_SECONDS
    await recorder.record(deployment, "CrashLoop", "a", warning=True)
    assert len(kube.events) == 3
    assert len({event["metadata"]["name"] for event in kube.events}) == 3


async def test_what_is_no_longer_silenced_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "FEWEST_KEPT", 4)
    now = 0.0
    recorder = EventRecorder(FakeKube(), "o", lambda: now)
    deployment = parse(llm_deployment())
    for number in range(40):
        now += SILENT_SECONDS / 4
        await recorder.record(deployment, "Serving", str(number), warning=False)
    assert len(recorder._posted) <= 8


async def test_an_event_that_cannot_be_posted_stops_nothing() -> None:
    kube = FakeKube()
    kube.fail_next(Forbidden(403, "no"))
    await EventRecorder(kube, "o", lambda: 0.0).record(parse(llm_deployment()), "Serving", "m", warning=False)
    assert kube.events == []


async def test_a_long_message_is_cut_to_what_the_server_takes() -> None:
    kube = FakeKube()
    await EventRecorder(kube, "o", lambda: 0.0).record(parse(llm_deployment()), "Serving", "m" * 5000, warning=True)
    assert len(kube.events[0]["message"]) == 1024
