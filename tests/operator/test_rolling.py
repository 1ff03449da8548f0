"""Which revision serves next, and what is remembered of it."""

from dataclasses import replace
from typing import Any

import pytest

from octavo_operator.api import parse
from octavo_operator.effective import RenderDefaults
from octavo_operator.model.resolved import ResolvedModel
from octavo_operator.observed import (
    ClusterView,
    ContainerView,
    NodeView,
    Observed,
    PodView,
    QuotaView,
    RevisionView,
)
from octavo_operator.preparing import Prepared, prepare
from octavo_operator.reasons import Reason
from octavo_operator.rolling import Rolling, roll
from octavo_operator.testing import llm_deployment

DEFAULTS = RenderDefaults(image="octavo/runtime:1", operator_version="1.0")
MODEL = ResolvedModel(kind="file", name="/weights")
NODE = NodeView("node-1", True, {}, (), {"cpu": 16000, "memory": 64 << 30, "pods": 110}, {})
OLD = {"device": "cpu", "maxNumSeqs": 8}
NEW = {"device": "cpu", "maxNumSeqs": 16}


def observed(now: float = 1000.0, engine: dict[str, Any] = OLD, *views: RevisionView, **spec: Any) -> Observed:
    deployment = parse(llm_deployment(model={"uri": "file:///weights"}, engine=engine, **spec))
    return Observed(now=now, deployment=deployment, cluster=ClusterView(nodes=(NODE,)), revisions=views)


def passed(seen: Observed, desired: int = 1) -> tuple[Rolling, Prepared]:
    prepared = prepare(seen, MODEL, DEFAULTS)
    return roll(seen, prepared, desired), prepared


def pod(name: str, revision: str, **changes: Any) -> PodView:
    view = PodView(
        name, f"uid-{name}", revision, 900.0, "Running", True, True, None, False, node="node-1", ip="10.0.0.1"
    )
    return replace(view, **changes)


@pytest.fixture
def serving() -> RevisionView:
    """The old revision, ready with one pod."""
    rolling, prepared = passed(observed())
    view = rolling.observed.revisions[0]
    done = replace(view, replicas=1, pods=(pod("old", view.hash),), succeeded_at=1000.0)
    assert prepared.wanted == view.hash
    return done


def test_the_first_revision_gets_its_pods_and_is_remembered() -> None:
    rolling, prepared = passed(observed())
    assert rolling.target == prepared.wanted
    assert rolling.plan is not None
    assert rolling.plan.replicas == {prepared.wanted: 1}
    assert [record.started_at for record in rolling.records] == [1000.0]


def test_it_succeeds_once_all_wanted_pods_serve(serving: RevisionView) -> None:
    rolling, _ = passed(observed(1010.0, OLD, replace(serving, succeeded_at=None)))
    assert [record.succeeded_at for record in rolling.records] == [1010.0]
    again, _ = passed(observed(1020.0, OLD, serving))
    assert again.records == ()


def test_a_new_revision_keeps_the_old_one_serving(serving: RevisionView) -> None:
    rolling, prepared = passed(observed(2000.0, NEW, serving))
    assert rolling.target == prepared.wanted != serving.hash
    assert rolling.stable == serving.hash
    assert rolling.plan is not None
    assert rolling.plan.replicas[serving.hash] == 1
    assert rolling.plan.drain == ()


def crashing(view: RevisionView) -> RevisionView:
    container = ContainerView(
        waiting_reason="CrashLoopBackOff",
        terminated_reason="Error",
        terminated_message='{"cause": "ModelCorrupt", "message": "weights are cut off"}',
        exit_code=1,
        finished_at=2050.0,
        restarts=4,
    )
    return replace(view, replicas=1, pods=(pod("new", view.hash, ready=False, container=container),))


def test_a_revision_that_crashes_is_rolled_back_and_its_failure_kept(serving: RevisionView) -> None:
    begun, prepared = passed(observed(2000.0, NEW, serving))
    new = next(view for view in begun.observed.revisions if view.hash == prepared.wanted)
    rolling, _ = passed(observed(2200.0, NEW, serving, crashing(new)))
    assert rolling.target == serving.hash
    [failed] = [record for record in rolling.records if record.hash == prepared.wanted]
    assert failed.failure is not None
    assert failed.failure["reason"] == Reason.MODEL_CORRUPT
    assert rolling.last_rollback is not None
    assert rolling.last_rollback["to"] == serving.hash


def test_a_failed_revision_is_not_tried_again_until_the_spec_changes(serving: RevisionView) -> None:
    begun, prepared = passed(observed(2000.0, NEW, serving))
    new = next(view for view in begun.observed.revisions if view.hash == prepared.wanted)
    failed = replace(new, replicas=0, failure={"reason": "ModelCorrupt", "message": "cut off", "at": 2200.0})
    held, _ = passed(observed(3000.0, NEW, serving, failed))
    assert held.target == serving.hash
    back, _ = passed(observed(3100.0, OLD, serving, failed))
    assert back.target == serving.hash
    restarted = next(view for view in back.observed.revisions if view.hash == serving.hash)
    assert restarted.started_at == 3100.0
    again, _ = passed(observed(3200.0, NEW, restarted, failed))
    assert again.target == prepared.wanted


def test_serving_in_full_clears_an_earlier_failure(serving: RevisionView) -> None:
    """The first rollout waited too long for a GPU, and got one in the end: it must be there to roll back to."""
    late = replace(
        serving, succeeded_at=None, failure={"reason": "RolloutBlockedNoCapacity", "message": "", "at": 900.0}
    )
    rolling, prepared = passed(observed(1010.0, OLD, late))
    [record] = rolling.records
    assert (record.hash, record.succeeded_at, record.failure) == (prepared.wanted, 1010.0, None)


def test_pods_that_were_replaced_condemn_nothing(serving: RevisionView) -> None:
    begun, prepared = passed(observed(2000.0, NEW, serving))
    new = next(view for view in begun.observed.revisions if view.hash == prepared.wanted)
    evicted = pod(
        "evicted", new.hash, phase="Failed", ready=False, status_reason="Evicted", status_message="disk pressure"
    )
    loading = pod("next", new.hash, ready=False, created_at=2050.0)
    rolling, _ = passed(observed(2100.0, NEW, serving, replace(new, replicas=1, pods=(evicted, loading))))
    assert rolling.target == new.hash


def test_nothing_serves_while_the_first_model_is_not_known() -> None:
    seen = observed()
    rolling = roll(seen, prepare(seen, None, DEFAULTS), 1)
    assert rolling.plan is None
    assert rolling.target == ""


def test_a_pod_that_no_node_could_hold_is_said_so() -> None:
    rolling, _ = passed(observed(1000.0, OLD, resources={"cpu": "64"}))
    assert [finding.reason for finding in rolling.findings] == [Reason.IMPOSSIBLE_REQUEST]


@pytest.mark.parametrize("rollout", [{}, {"strategy": "InPlace"}])
def test_what_fits_nowhere_takes_no_pod_of_the_stable_revision_away(
    rollout: dict[str, Any], serving: RevisionView
) -> None:
    view = replace(serving, pods=(replace(serving.pods[0], requests={"cpu": 1000, "pods": 1}),))
    rolling, prepared = passed(observed(2000.0, OLD, view, resources={"cpu": "64"}, rollout=rollout))
    assert rolling.target == prepared.wanted != serving.hash
    assert rolling.plan is not None
    assert rolling.plan.drain == ()
    assert rolling.plan.replicas[serving.hash] == 1
    assert Reason.IMPOSSIBLE_REQUEST in [finding.reason for finding in rolling.findings]


def test_a_rollout_in_place_that_has_no_place_says_that_it_is_blocked(serving: RevisionView) -> None:
    busy = replace(NODE, requested={"cpu": 16000})
    seen = observed(2000.0, NEW, serving, rollout={"strategy": "InPlace"})
    rolling, _ = passed(replace(seen, cluster=ClusterView(nodes=(busy,))))
    assert [finding.reason for finding in rolling.findings] == [Reason.ROLLOUT_BLOCKED_NO_CAPACITY]
    assert rolling.plan is not None
    assert rolling.plan.drain == ()


def test_a_first_start_that_has_no_place_is_no_blocked_rollout() -> None:
    busy = ClusterView(nodes=(replace(NODE, requested={"cpu": 16000}),))
    first = replace(observed(2000.0, NEW, rollout={"strategy": "InPlace"}), cluster=busy)
    begun, prepared = passed(first)
    assert begun.findings == ()
    waiting = pod("new", prepared.wanted, phase="Pending", node="", ready=False, scheduled_message="no nodes")
    view = replace(begun.observed.revisions[0], replicas=1, pods=(waiting,))
    assert passed(replace(first, now=2060.0, revisions=(view,)))[0].findings == ()
    late, _ = passed(replace(first, now=9000.0, revisions=(view,)))
    failure = late.observed.revisions[0].failure
    assert failure is not None
    assert failure["reason"] == "WaitingForNode"


@pytest.mark.parametrize(
    ("is_there", "changes"),
    [
        (True, {}),
        (True, {"terminating": True}),
        (False, {"phase": "Failed", "status_reason": "Evicted", "ready": False}),
        (False, {"phase": "Succeeded", "ready": False}),
    ],
)
def test_only_pods_that_are_there_could_make_room(
    serving: RevisionView, is_there: bool, changes: dict[str, Any]
) -> None:
    before = replace(serving, replicas=int(not changes), pods=(replace(serving.pods[0], **changes),))
    seen = observed(2000.0, NEW, before, rollout={"strategy": "InPlace"})
    seen = replace(seen, cluster=ClusterView(nodes=(replace(NODE, requested={"cpu": 16000}),)))
    begun, prepared = passed(seen)
    assert bool(begun.findings) is is_there
    new = next(view for view in begun.observed.revisions if view.hash == prepared.wanted)
    waiting = pod("new", new.hash, phase="Pending", node="", ready=False, scheduled_message="no nodes")
    late, _ = passed(replace(seen, now=9000.0, revisions=(before, replace(new, replicas=1, pods=(waiting,)))))
    [failed] = [record.failure for record in late.records if record.hash == new.hash and record.failure]
    assert failed["reason"] == ("RolloutBlockedNoCapacity" if is_there else "WaitingForNode")


def test_what_a_quota_never_allows_is_told_as_the_quota_not_as_a_setting_of_the_rollout(serving: RevisionView) -> None:
    quota = QuotaView("tight", {"requests.cpu": 1500}, {"requests.cpu": 1000})
    cluster = ClusterView(nodes=(NODE,), quotas=(quota,))
    view = replace(serving, pods=(replace(serving.pods[0], requests={"cpu": 1000, "pods": 1}),))
    seen = replace(observed(2000.0, OLD, view, resources={"cpu": "2"}), cluster=cluster)
    begun, prepared = passed(seen)
    new = next(each for each in begun.observed.revisions if each.hash == prepared.wanted)
    refused = replace(new, replicas=1, create_error="exceeded quota: tight")
    rolling, _ = passed(replace(seen, now=2010.0, revisions=(view, refused)))
    assert rolling.findings == ()
    assert rolling.plan is not None
    assert rolling.plan.blocked
    assert rolling.plan.drain == ()
