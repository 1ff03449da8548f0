"""Raw objects -> views."""

import json
from typing import Any

import pytest

from octavo_operator.kube_client import Raw
from octavo_operator.observed import ContainerView, RuntimeView
from octavo_operator.testing import node
from octavo_operator.timestamp import parse_time
from octavo_operator.views import (
    view_claim,
    view_container,
    view_event,
    view_job,
    view_node,
    view_pod,
    view_quota,
    view_revision,
    view_storage_classes,
)

T1, T2, T3 = "2026-01-01T10:00:00Z", "2026-01-01T10:00:05Z", "2026-01-01T10:01:00Z"


def pod(**status: Any) -> Raw:
    return {
        "kind": "Pod",
        "metadata": {
            "namespace": "team",
            "name": "x-1-a",
            "uid": "u",
            "creationTimestamp": T1,
            "labels": {"octavo.dev/deployment": "x", "octavo.dev/revision": "abc", "octavo.dev/routed": "true"},
        },
        "spec": {"nodeName": "n", "containers": [{"name": "octavo", "resources": {"requests": {"cpu": "2"}}}]},
        "status": status,
    }


def test_a_serving_pod() -> None:
    raw = pod(
        phase="Running",
        podIP="10.0.0.7",
        conditions=[
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": T2},
            {"type": "Ready", "status": "True", "lastTransitionTime": T3},
        ],
        containerStatuses=[{"name": "octavo", "restartCount": 2, "state": {"running": {"startedAt": T2}}}],
    )
    runtime = RuntimeView(at=1.0, phase="Ready")
    view = view_pod(raw, runtime)
    assert (view.name, view.uid, view.revision, view.node, view.ip) == ("x-1-a", "u", "abc", "n", "10.0.0.7")
    assert (view.phase, view.ready, view.routed, view.terminating) == ("Running", True, True, False)
    assert (view.created_at, view.scheduled_at, view.ready_at) == (parse_time(T1), parse_time(T2), parse_time(T3))
    assert view.container == ContainerView(running_since=parse_time(T2), restarts=2)
    assert view.requests == {"cpu": 2000, "pods": 1}
    assert view.runtime is runtime


def test_a_pod_that_nothing_is_known_of_yet() -> None:
    view = view_pod({"kind": "Pod", "metadata": {"name": "p"}})
    assert (view.phase, view.ready, view.routed, view.scheduled_at, view.ready_at) == (
        "Pending",
        False,
        False,
        None,
        None,
    )
    assert view.container == ContainerView()


def test_a_pod_that_is_drained_and_one_that_terminates() -> None:
    raw = pod(phase="Running")
    raw["metadata"]["labels"]["octavo.dev/routed"] = "false"
    raw["metadata"]["annotations"] = {"octavo.dev/drain-started-at": T2}
    raw["metadata"]["deletionTimestamp"] = T3
    view = view_pod(raw)
    assert (view.routed, view.drain_started_at, view.terminating) == (False, parse_time(T2), True)


def test_a_drain_mark_that_somebody_edited_is_no_time() -> None:
    raw = pod()
    raw["metadata"]["annotations"] = {"octavo.dev/drain-started-at": "soon"}
    assert view_pod(raw).drain_started_at is None


def test_why_a_pod_has_no_node() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    view = view_pod(pod(phase="Pending", conditions=[condition]))
    assert (view.scheduled_reason, view.scheduled_message, view.scheduled_at) == ("Unschedulable", "0/2 nodes", None)


def test_an_evicted_pod() -> None:
    view = view_pod(pod(phase="Failed", reason="Evicted", message="low on ephemeral-storage"))
    assert (view.phase, view.status_reason, view.status_message) == ("Failed", "Evicted", "low on ephemeral-storage")


@pytest.mark.parametrize("place", ["state", "lastState"])
def test_the_termination_log_is_kept_also_while_the_container_waits_to_restart(place: str) -> None:
    ended = {"reason": "Error", "exitCode": 3, "message": '{"cause": "OutOfMemory"}', "finishedAt": T3}
    found = {"name": "octavo", "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "5m"}}}
    found[place] = {**found.get(place, {}), "terminated": ended}  # type: ignore[dict-item]
    view = view_container({"containerStatuses": [found]})
    assert (view.terminated_reason, view.exit_code, view.terminated_message) == ("Error", 3, '{"cause": "OutOfMemory"}')
    assert (view.waiting_reason, view.finished_at) == ("CrashLoopBackOff", parse_time(T3))


def test_the_serving_container_is_looked_at_beside_sidecars() -> None:
    statuses = [{"name": "proxy", "restartCount": 9}, {"name": "octavo", "restartCount": 1}]
    assert view_container({"containerStatuses": statuses}).restarts == 1


def test_an_init_container_in_the_way_is_what_is_seen() -> None:
    waiting = {"name": "octavo", "state": {"waiting": {"reason": "PodInitializing"}}}
    done = {"name": "first", "state": {"terminated": {"exitCode": 0}}}
    stuck = {"name": "second", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    status = {"containerStatuses": [waiting], "initContainerStatuses": [done, stuck]}
    assert view_container(status).waiting_reason == "ImagePullBackOff"
    status["initContainerStatuses"] = [done]
    assert view_container(status).waiting_reason == "PodInitializing"


def record(**annotations: str) -> Raw:
    return {"metadata": {"annotations": annotations}, "revision": 4, "data": {"template": {}}}


def test_a_revision() -> None:
    failure = {"reason": "CrashLoop", "message": "m", "at": 5}
    notes = {
        "octavo.dev/started-at": T1,
        "octavo.dev/succeeded-at": T3,
        "octavo.dev/failure": json.dumps(failure),
    }
    deployment = {"spec": {"replicas": 2}, "status": {}}
    young, old = view_pod(pod()), view_pod({"metadata": {"name": "old", "creationTimestamp": "2025-01-01T00:00:00Z"}})
    view = view_revision("abc", {**record(), "metadata": {"annotations": notes}}, deployment, [young, old])
    assert (view.hash, view.number, view.data, view.replicas) == ("abc", 4, {"template": {}}, 2)
    assert (view.started_at, view.succeeded_at, view.failure) == (parse_time(T1), parse_time(T3), failure)
    assert [each.name for each in view.pods] == ["old", "x-1-a"]


def test_a_revision_of_which_a_half_is_missing() -> None:
    assert view_revision("abc", record(), None).replicas is None
    lonely = view_revision("abc", None, {"spec": {}})
    assert (lonely.number, lonely.data, lonely.replicas, lonely.failure) == (0, {}, 1, None)


def test_a_failure_that_somebody_edited_is_none() -> None:
    for text in ("{", "[]"):
        assert view_revision("a", {"metadata": {"annotations": {"octavo.dev/failure": text}}}, None).failure is None


def test_why_pods_cannot_be_made() -> None:
    condition = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: gpus"}
    assert view_revision("a", None, {"status": {"conditions": [condition]}}).create_error == "exceeded quota: gpus"
    over = {**condition, "status": "False"}
    assert view_revision("a", None, {"status": {"conditions": [over]}}).create_error == ""


def test_a_downloader() -> None:
    conditions = [{"type": "Complete", "status": "True"}]
    raw = {"metadata": {"name": "d"}, "status": {"succeeded": 1, "failed": 2, "conditions": conditions}}
    view = view_job(raw, [view_pod(pod())])
    assert (view.active, view.succeeded, view.failed, view.complete, view.gave_up) == (0, 1, 2, True, False)
    assert len(view.pods) == 1


def test_a_node_is_schedulable_when_ready_and_not_cordoned() -> None:
    requested = {"cpu": 500, "nvidia.com/gpu": 0}
    view = view_node(node("n"), requested)
    assert (view.schedulable, view.allocatable["cpu"], view.requested) == (True, 8000, {"cpu": 500})
    assert not view_node({**node("n"), "spec": {"unschedulable": True}}, {}).schedulable
    lost = node("n")
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert not view_node(lost, {}).schedulable
    requested["cpu"] = 1
    assert view.requested == {"cpu": 500}  # a snapshot


def test_a_quota_before_and_after_its_first_count() -> None:
    fresh = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}
    assert view_quota(fresh).hard == {"requests.nvidia.com/gpu": 2}
    counted = {**fresh, "status": {"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "250m"}}}
    assert (view_quota(counted).hard, view_quota(counted).used) == ({"requests.cpu": 1000}, {"requests.cpu": 250})


def test_a_claim() -> None:
    raw = {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}}
    view = view_claim(raw)
    assert (view.name, view.phase, view.access_modes, view.storage_class) == (
        "c",
        "Pending",
        ("ReadWriteOnce",),
        "fast",
    )


def test_an_event_happened_when_it_last_happened() -> None:
    raw = {
        "metadata": {"creationTimestamp": T1},
        "reason": "FailedMount",
        "message": "no",
        "eventTime": T2,
        "series": {"lastObservedTime": T3},
        "involvedObject": {"kind": "Pod", "name": "p"},
    }
    view = view_event(raw)
    assert (view.reason, view.message, view.kind, view.name) == ("FailedMount", "no", "Pod", "p")
    assert view.at == parse_time(T3)
    del raw["series"]
    assert view_event(raw).at == parse_time(T2)


def test_storage_classes_and_the_default_one() -> None:
    default = {"metadata": {"name": "b", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
    assert view_storage_classes([{"metadata": {"name": "a"}}, default]) == (frozenset({"a", "b"}), "b")
    assert view_storage_classes([]) == (frozenset(), "")
