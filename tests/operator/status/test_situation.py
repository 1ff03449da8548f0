"""What counts as a pod that serves."""

from typing import Any

import pytest

from octavo_operator.status.situation import serves


def test_a_ready_routed_pod_serves(build: Any) -> None:
    assert serves(build.pod())


@pytest.mark.parametrize(
    "changes",
    [{"ready": False}, {"routed": False}, {"drain_started_at": 1.0}, {"terminating": True}, {"phase": "Failed"}],
)
def test_a_pod_that_gets_no_requests_does_not_serve(build: Any, changes: dict[str, Any]) -> None:
    assert not serves(build.pod(**changes))


def test_pods_are_found_by_revision(build: Any) -> None:
    old, new = build.pod("old", build.old), build.pod("new")
    situation = build.situation(build.revision(build.old, old, number=1), build.revision(build.new, new))
    assert situation.pods() == (old, new)
    assert situation.target_pods() == (new,)
    assert situation.revision("nowhere") is None
