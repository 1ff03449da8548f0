"""Why a pod has no node, or was thrown off one: what the scheduler and the kubelet wrote, as findings."""

import re

from octavo_operator.observed import PodView
from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding

_INSUFFICIENT = re.compile(r"Insufficient ([\w./-]+\w)")
_OUT_OF = re.compile(r"^OutOf([\w./-]+)$")
_MISSING_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')
_VOLUME_WORDS = ("PersistentVolumeClaim", "persistent volumes to bind", "volume node affinity", "persistentvolumeclaim")
_DISK_WORDS = ("ephemeral-storage", "ephemeral local storage", "emptydir", "diskpressure", "no space left")
_LOST_NODE = frozenset({"NodeLost", "NodeShutdown", "Shutdown", "Terminated", "NodeAffinity"})


def unscheduled(pod: PodView) -> Finding | None:
    """A pod that the scheduler has not placed."""
    if pod.node or pod.phase != "Pending":
        return None
    message = _without_preemption(pod.scheduled_message)
    if not message:
        return Finding(Reason.STARTING, "The scheduler has not looked at the pod yet.", since=pod.created_at)
    return Finding(_reason_of(message), message, since=pod.created_at)


def thrown_off(pod: PodView) -> Finding | None:
    """A pod that its node evicted, refused or took down with it."""
    reason, message = pod.status_reason, pod.status_message
    if reason == "Evicted":
        full = any(word in message.lower() for word in _DISK_WORDS)
        return Finding(Reason.DISK_FULL if full else Reason.EVICTED, message or "The pod was evicted.", crashed=True)
    if reason in _LOST_NODE:
        return Finding(Reason.NODE_LOST, message or f"Its node is gone ({reason}).", crashed=True)
    resource = _OUT_OF.match(reason)
    if resource is not None:
        return Finding(_resource_reason(resource[1]), message or f"The node had too little {resource[1]} left.")
    if reason == "UnexpectedAdmissionError":  # device plugins: a GPU that was promised is unhealthy or taken
        return Finding(Reason.WAITING_FOR_GPU, message or "The node could not give the pod its devices.")
    return None


def _reason_of(message: str) -> Reason:
    missing = [_resource_reason(name) for name in _INSUFFICIENT.findall(message)]
    if Reason.WAITING_FOR_GPU in missing:
        return Reason.WAITING_FOR_GPU
    if _MISSING_CLAIM.search(message):
        return Reason.REFERENCE_MISSING
    if not missing and any(word in message for word in _VOLUME_WORDS):
        return Reason.WAITING_FOR_VOLUME
    return Reason.WAITING_FOR_NODE


def _resource_reason(resource: str) -> Reason:
    """Devices are extended resources, and those have a domain in their name."""
    return Reason.WAITING_FOR_GPU if "/" in resource else Reason.WAITING_FOR_NODE


def _without_preemption(message: str) -> str:
    """`0/2 nodes are available: 2 Insufficient nvidia.com/gpu.` without what follows about preemption."""
    return re.split(r"\s*(?:no new claims to deallocate,?\s*)?preemption:", message)[0].strip()
