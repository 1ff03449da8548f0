"""What is found in a situation, and what is no longer worth telling."""

from typing import Any

import pytest

from octavo_operator.observed import ClaimView, ClusterView, JobView, NodeView
from octavo_operator.reasons import Reason
from octavo_operator.status.counts import count
from octavo_operator.status.finding import Finding
from octavo_operator.status.gathering import gather, is_satisfied, most_replicas
from octavo_operator.status.situation import RolloutFacts, Situation

NEW, OLD = "bbbbbbbbbb", "aaaaaaaaaa"
BESIDE = [
    (True, {}),
    (True, {"ready": False}),
    (True, {"terminating": True}),
    (True, {"terminating": True, "phase": "Failed"}),
    (False, {"phase": "Failed", "status_reason": "Evicted"}),
    (False, {"phase": "Succeeded"}),
]


def reasons(situation: Situation) -> set[Reason]:
    return {finding.reason for finding in gather(situation, count(situation))}


def test_a_serving_deployment_has_no_findings(build: Any) -> None:
    situation = build.situation()
    assert is_satisfied(situation, count(situation))
    assert gather(situation, count(situation)) == ()


def test_what_reconcile_met_is_a_finding(build: Any) -> None:
    refused = Finding(Reason.MODEL_ACCESS_DENIED, "The hub says 403.")
    assert refused in gather(build.situation(findings=(refused,)), count(build.situation()))


def test_older_pods_tell_nothing(build: Any) -> None:
    crashing = build.crashed(name="old", revision=build.old)
    situation = build.situation(
        build.revision(build.old, crashing, number=1), build.revision(build.new, build.starting())
    )
    assert Reason.CRASH_LOOP not in reasons(situation)
    assert Reason.ROLLING_OUT in reasons(situation)


def test_an_evicted_pod_is_history_once_its_successor_serves(build: Any) -> None:
    evicted = build.starting("a", phase="Failed", status_reason="Evicted", created_at=build.now - 900)
    still = build.situation(build.revision(build.new, evicted, build.starting("b")))
    replaced = build.situation(build.revision(build.new, evicted, build.pod("b")))
    assert Reason.EVICTED in reasons(still)
    assert reasons(replaced) == set()


def test_a_pod_on_a_dead_node_is_lost_with_it(build: Any) -> None:
    silent = build.pod(ready=False)
    dead = NodeView("octavo-1", False, {}, (), {}, {}, ready=False)
    alive = NodeView("octavo-1", True, {}, (), {}, {})
    other = NodeView("octavo-2", True, {}, (), {}, {})
    for nodes, lost in (((dead,), True), ((other,), True), ((alive, other), False), ((), False)):
        situation = build.situation(build.revision(build.new, silent), seen={"cluster": ClusterView(nodes=nodes)})
        assert (Reason.NODE_LOST in reasons(situation)) is lost


def test_missing_references_matter_only_while_pods_are_needed(build: Any) -> None:
    seen = {"missing_references": ("Secret hub-token",)}
    situation = build.situation(build.revision(build.new), seen=seen)
    [missing] = [found for found in gather(situation, count(situation)) if found.reason is Reason.REFERENCE_MISSING]
    assert missing.message == "Secret hub-token does not exist."
    assert reasons(build.situation(seen=seen)) == set()


def test_a_refusal_of_pods_is_told_while_pods_are_missing(build: Any) -> None:
    error = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    missing = build.situation(build.revision(build.new, replicas=1, create_error=error))
    there = build.situation(build.revision(build.new, build.starting(), create_error=error))
    assert Reason.WAITING_FOR_QUOTA in reasons(missing)
    assert Reason.WAITING_FOR_QUOTA not in reasons(there)


def test_a_revision_that_was_given_up_blocks_whatever_it_died_of(build: Any) -> None:
    failure = {"reason": "WaitingForGPU", "message": "No GPU came free.", "at": "2027-01-15T07:00:00Z"}
    failed = build.revision(build.new, failure=failure)
    serving = build.revision(build.old, build.pod(revision=build.old), number=1)
    situation = build.situation(serving, failed, target=build.old, stable=build.old)
    [finding] = [found for found in gather(situation, count(situation)) if found.reason is Reason.WAITING_FOR_GPU]
    assert finding.blocks
    assert finding.message == f"Revision {build.new} was given up. No GPU came free."


def test_a_failure_with_an_unknown_reason_is_still_told(build: Any) -> None:
    failed = build.revision(build.new, failure={"reason": "Gremlins"})
    assert Reason.PROGRESS_DEADLINE_EXCEEDED in reasons(build.situation(failed))


def test_a_failure_is_dated_by_seconds_or_by_text(build: Any) -> None:
    for at in (1_800_000_000.0, "2027-01-15T08:00:00Z"):
        situation = build.situation(build.revision(build.new, failure={"reason": "CrashLoop", "at": at}))
        assert 1_800_000_000.0 in [finding.since for finding in gather(situation, count(situation))]


def test_claim_and_downloader_are_asked(build: Any) -> None:
    job = JobView("smollm-dl-1", 1, 0, 0, complete=False, gave_up=False)
    seen = {"claim": ClaimView("weights", "Bound", ("ReadWriteOnce",), "")}
    deployment = build.deployment(replicas=2)
    situation = build.situation(build.revision(build.new), deployment=deployment, seen=seen, download=job, desired=2)
    assert {Reason.VOLUME_MULTI_ATTACH, Reason.DOWNLOADING} <= reasons(situation)


def test_progress_is_told_by_what_goes_on(build: Any) -> None:
    empty = build.revision(build.new)
    assert reasons(build.situation(empty, target="", wanted="cccccccccc")) == {Reason.RESOLVING_MODEL}
    assert reasons(build.situation(empty, target="", wanted=build.new)) == {Reason.DOWNLOADING}
    assert reasons(build.situation(empty, stable="")) == {Reason.STARTING}
    assert reasons(build.situation(empty)) == {Reason.SCALING}
    assert reasons(build.situation(empty, rollout=RolloutFacts(done=False))) == {Reason.SCALING}
    assert reasons(build.situation(empty, stable=build.old)) == {Reason.STARTING}
    assert reasons(build.situation(empty, rollout=RolloutFacts(done=False, paused=True))) == {Reason.PAUSED}
    assert reasons(build.situation(desired=0)) == {Reason.SCALING}


@pytest.mark.parametrize("stable", ["", OLD, NEW])
@pytest.mark.parametrize(("is_there", "changes"), BESIDE)
def test_a_rollout_is_what_takes_over_from_pods_that_are_there(
    build: Any, stable: str, is_there: bool, changes: dict[str, Any]
) -> None:
    old = build.revision(OLD, build.pod("old", OLD, **changes), number=1)
    situation = build.situation(old, build.revision(NEW), stable=stable)
    assert (Reason.ROLLING_OUT in reasons(situation)) is is_there


def test_a_pause_is_told_while_it_holds_a_pod(build: Any) -> None:
    held = RolloutFacts(done=False, paused=True)
    old = build.revision(OLD, build.pod("old", OLD), number=1)
    assert Reason.PAUSED in reasons(build.situation(old, build.revision(NEW), rollout=held))
    assert Reason.PAUSED in reasons(build.situation(build.revision(NEW), rollout=held))
    assert Reason.PAUSED not in reasons(build.situation(build.revision(NEW, build.starting()), rollout=held))


def test_pods_more_than_wanted_drain_beside_those_that_serve(build: Any) -> None:
    leaving = build.pod("b", routed=False, drain_started_at=build.now - 5)
    assert reasons(build.situation(build.revision(build.new, build.pod("a"), leaving))) == {Reason.DRAINING}


def test_a_suspended_deployment_has_no_troubles_but_its_spec(build: Any) -> None:
    deployment = build.deployment(suspend=True)
    assert (
        reasons(build.situation(build.revision(build.new, build.crashed()), deployment=deployment, desired=0)) == set()
    )
    invalid = Finding(Reason.SPEC_INVALID, "spec.pod.patch: no.")
    assert reasons(build.situation(deployment=deployment, desired=0, findings=(invalid,))) == {Reason.SPEC_INVALID}


def test_the_most_replicas_are_those_of_the_autoscaler(build: Any) -> None:
    auto = build.deployment(scaling={"mode": "Auto", "auto": {"maxReplicas": 4}})
    assert [most_replicas(each) for each in (build.deployment(), build.deployment(replicas=0), auto)] == [1, 0, 4]
