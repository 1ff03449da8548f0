"""What the scheduler and the kubelet say about a pod's place becomes the right reason."""

from typing import Any

import pytest

from octavo_operator.reasons import Reason
from octavo_operator.status.scheduling import thrown_off, unscheduled

PREEMPTION = (
    " no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
)


def pending(build: Any, message: str) -> Any:
    return build.starting(node="", scheduled_at=None, scheduled_reason="Unschedulable", scheduled_message=message)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", Reason.WAITING_FOR_GPU),
        ("0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient amd.com/gpu.", Reason.WAITING_FOR_GPU),
        ("0/2 nodes are available: 2 Insufficient memory.", Reason.WAITING_FOR_NODE),
        ("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.", Reason.WAITING_FOR_NODE),
        ("0/2 nodes are available: 2 node(s) had untolerated taint {gpu: only}.", Reason.WAITING_FOR_NODE),
        ("no nodes available to schedule pods", Reason.WAITING_FOR_NODE),
        ("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.", Reason.WAITING_FOR_VOLUME),
        ("0/2 nodes are available: 2 node(s) had volume node affinity conflict.", Reason.WAITING_FOR_VOLUME),
        ('0/2 nodes are available: persistentvolumeclaim "weights" not found.', Reason.REFERENCE_MISSING),
    ],
)
def test_reason_of_a_pod_without_node(build: Any, message: str, reason: Reason) -> None:
    finding = unscheduled(pending(build, message + PREEMPTION))
    assert finding is not None
    assert finding.reason is reason
    assert finding.message == message


def test_a_pod_that_was_just_made_is_starting(build: Any) -> None:
    finding = unscheduled(pending(build, ""))
    assert finding is not None
    assert finding.reason is Reason.STARTING


def test_a_pod_on_a_node_is_not_unscheduled(build: Any) -> None:
    assert unscheduled(build.starting()) is None


@pytest.mark.parametrize(
    ("status_reason", "message", "reason"),
    [
        ("Evicted", "The node was low on resource: ephemeral-storage. Threshold ...", Reason.DISK_FULL),
        ("Evicted", 'Usage of EmptyDir volume "cache" exceeds the limit "2Gi".', Reason.DISK_FULL),
        ("Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.", Reason.DISK_FULL),
        ("Evicted", "The node was low on resource: memory.", Reason.EVICTED),
        ("NodeLost", "Node octavo-2 which was running pod is unresponsive", Reason.NODE_LOST),
        ("Terminated", "Pod was terminated in response to imminent node shutdown.", Reason.NODE_LOST),
        ("OutOfnvidia.com/gpu", "", Reason.WAITING_FOR_GPU),
        ("OutOfcpu", "", Reason.WAITING_FOR_NODE),
        ("UnexpectedAdmissionError", "Allocate failed: device plugin says no", Reason.WAITING_FOR_GPU),
    ],
)
def test_reason_of_a_pod_that_its_node_gave_up(build: Any, status_reason: str, message: str, reason: Reason) -> None:
    finding = thrown_off(build.starting(phase="Failed", status_reason=status_reason, status_message=message))
    assert finding is not None
    assert finding.reason is reason
    assert finding.message


def test_a_pod_in_peace_was_not_thrown_off(build: Any) -> None:
    assert thrown_off(build.pod()) is None
