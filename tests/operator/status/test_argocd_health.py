"""Argo CD's health script, run by a Lua interpreter on statuses as the operator writes them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lupa
import pytest

from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding
from octavo_operator.status.judge import judge
from octavo_operator.status.report import report
from octavo_operator.status.situation import RolloutFacts, Situation

SCRIPT = Path(__file__).parents[3] / "integrations" / "argocd" / "health.lua"
RECORDED = sorted(Path(__file__).parent.glob("recorded/*.json"))


def health(resource: Mapping[str, Any]) -> tuple[str, str]:
    """As Argo CD runs it: `obj` is a global, the returned table has status and message."""
    lua = lupa.LuaRuntime(unpack_returned_tuples=True)
    lua.globals().obj = lua.table_from(resource, recursive=True)
    answer = lua.execute(SCRIPT.read_text())
    return answer["status"], answer["message"]


def resource(situation: Situation) -> dict[str, Any]:
    generation = situation.observed.deployment.generation
    return {"metadata": {"generation": generation}, "status": report(situation, judge(situation))}


def test_serving_is_healthy(build: Any) -> None:
    assert health(resource(build.situation())) == ("Healthy", f"1 of 1 replicas serve revision {build.new}.")


def test_a_resource_nobody_looked_at_is_progressing() -> None:
    assert health({"metadata": {"generation": 1}})[0] == "Progressing"
    assert health({"metadata": {"generation": 1}, "status": {}})[0] == "Progressing"


def test_a_newer_spec_is_progressing_until_it_is_seen(build: Any) -> None:
    seen = resource(build.situation())
    seen["metadata"]["generation"] += 1
    assert health(seen)[0] == "Progressing"


def test_a_starting_pod_and_a_rollout_are_progressing(build: Any) -> None:
    old = build.revision(build.old, build.pod("old", build.old), number=1)
    rolling = build.situation(old, build.revision(build.new, build.starting()), rollout=RolloutFacts(done=False))
    assert health(resource(build.situation(build.revision(build.new, build.starting()))))[0] == "Progressing"
    assert health(resource(rolling))[0] == "Progressing"


def test_what_needs_a_person_is_degraded_and_says_why(build: Any) -> None:
    refused = Finding(Reason.REVISION_NOT_FOUND, "org/smollm has no revision v9.")
    serving = build.revision(build.old, build.pod(revision=build.old), number=1)
    status, message = health(resource(build.situation(serving, target=build.old, findings=(refused,))))
    assert status == "Degraded"
    assert message.startswith("org/smollm has no revision v9.")


def test_serving_with_a_fault_is_degraded(build: Any) -> None:
    container = build.container(running_since=build.now - 20, exit_code=1, finished_at=build.now - 21, restarts=1)
    assert health(resource(build.situation(build.revision(build.new, build.pod(container=container)))))[0] == "Degraded"


def test_draining_after_a_scale_down_stays_healthy(build: Any) -> None:
    leaving = build.pod("b", routed=False, drain_started_at=build.now - 5)
    assert health(resource(build.situation(build.revision(build.new, build.pod("a"), leaving))))[0] == "Healthy"


def test_suspended_is_suspended(build: Any) -> None:
    deployment = build.deployment(suspend=True)
    assert (
        health(resource(build.situation(build.revision(build.new), deployment=deployment, desired=0)))[0] == "Suspended"
    )


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_statuses_recorded_from_a_cluster(recorded: Path) -> None:
    """Each file holds {"health": ..., "resource": ...}."""
    given = json.loads(recorded.read_text())
    assert health(given["resource"])[0] == given["health"]
