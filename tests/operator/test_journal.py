"""The log tells each thing done once, by what was before and what is now."""

import json
from typing import Any

import pytest

from octavo_operator import names
from octavo_operator.journal import tell, tell_written

KEY = ("team", "chat")
HASH = "bbbbbbbbbb"
SECRET = "hf_" + "a1B2c3D4" * 4


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """Messages, and their facts without the resource's name."""
    lines = [(record.getMessage(), dict(record.__dict__["fields"])) for record in caplog.records]
    assert all((facts.pop("namespace"), facts.pop("deployment")) == KEY for _, facts in lines)
    assert all(record.levelname == "INFO" for record in caplog.records)
    return lines


def child(kind: str, replicas: int | None = None, **annotations: str) -> dict[str, Any]:
    metadata = {
        "name": "chat-b",
        "labels": {names.REVISION: HASH},
        "annotations": {f"octavo.dev/{key.replace('_', '-')}": value for key, value in annotations.items()},
    }
    return {"kind": kind, "metadata": metadata, "spec": {} if replicas is None else {"replicas": replicas}}


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="octavo_operator.journal")


CREATED = ("child created", {"kind": "ControllerRevision", "name": "chat-b"})
BEGUN = {"started_at": "2027-01-15T08:00:00Z"}
ENDED = {**BEGUN, "succeeded_at": "2027-01-15T08:05:00Z"}
FAILED = {**BEGUN, "failure": json.dumps({"reason": "CrashLoop", "message": f"It said {SECRET}", "at": 1.0})}
AGAIN = {**ENDED, "started_at": "2027-01-15T09:00:00Z"}


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        (None, BEGUN, [CREATED, ("rollout began", {"revision": HASH})]),
        (BEGUN, ENDED, [("rollout ended", {"revision": HASH})]),
        (BEGUN, FAILED, [("rollout failed", {"revision": HASH, "reason": "CrashLoop"})]),
        (ENDED, AGAIN, [("rollout began", {"revision": HASH})]),
        (FAILED, BEGUN, [("child changed", {"kind": "ControllerRevision", "name": "chat-b"})]),
    ],
)
def test_a_rollout_is_told_by_what_its_record_says_anew(
    before: Any, now: dict[str, str], lines: Any, caplog: pytest.LogCaptureFixture
) -> None:
    seen = None if before is None else child("ControllerRevision", **before)
    tell_written(KEY, child("ControllerRevision", **now), seen)
    assert told(caplog) == lines
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("before", "now", "messages"),
    [
        (None, 2, ["child created", "replicas changed"]),
        (None, 0, ["child created"]),
        (1, 2, ["replicas changed"]),
        (2, 0, ["replicas changed"]),
        (2, 2, ["child changed"]),
        (2, None, ["child changed"]),
    ],
)
def test_replicas_are_told_from_and_to_where_they_change(
    before: int | None, now: int | None, messages: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    tell_written(KEY, child("Deployment", now), None if before is None else child("Deployment", before))
    assert [message for message, _ in told(caplog)] == messages
    for message, facts in told(caplog):
        if message == "replicas changed":
            assert facts == {"revision": HASH, "from": before or 0, "to": now}


def test_a_secret_that_is_a_child_is_told_by_its_name_alone(caplog: pytest.LogCaptureFixture) -> None:
    manifest = {"kind": "Secret", "metadata": {"name": "chat-keys"}, "data": {"api-keys": SECRET}}
    tell_written(KEY, manifest, None)
    assert told(caplog) == [("child created", {"kind": "Secret", "name": "chat-keys"})]


def test_a_line_names_the_resource(caplog: pytest.LogCaptureFixture) -> None:
    tell(KEY, "pod deleted", pod="chat-b-1")
    assert told(caplog) == [("pod deleted", {"pod": "chat-b-1"})]
