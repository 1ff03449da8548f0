"""Why a container has not been made: image, volumes, references, refusals of the node."""

import re

from octavo_operator.observed import EventView, PodView
from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding

_IMAGE_REASONS = frozenset(
    {"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"}
    | {"RegistryUnavailable", "SignatureValidationFailed"}
)
_CONTAINER_REASONS = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PostStartHookError"}
)
_VOLUMES_ARE_THERE = frozenset({"SuccessfulAttachVolume", "Pulling", "Pulled", "Created"})
_PASSING = re.compile(
    r"(?i)timeout|timed out|toomanyrequests|429|connection re(?:set|fused)|\bEOF\b|temporar|\b50[0234]\b"
)
_MISSING = re.compile(r'(?i)(?:secret|configmap) "[^"]+" not found|find key \S+ in (?:secret|configmap)|non-existent')
_RPC_NOISE = re.compile(r"rpc error: code = \w+ desc = ")


def held_up(pod: PodView) -> Finding | None:
    """A pod on a node whose container does not run yet."""
    container = pod.container
    if container.running_since is not None or not pod.node:
        return None
    reason, message = container.waiting_reason, _RPC_NOISE.sub("", container.waiting_message)
    if reason in _IMAGE_REASONS:
        return _image(pod, reason, message)
    if reason in _CONTAINER_REASONS:
        return _refused(pod, reason, message)
    return _volume(pod) or _sandbox(pod) or _making(pod)


def _image(pod: PodView, reason: str, message: str) -> Finding:
    """The kubelet's back-off message may hide the cause; the pod's own events have it."""
    event = _newest(pod, "Failed", "image")
    if event is not None and "rror" not in message:
        message = _RPC_NOISE.sub("", event.message)
    passing = reason in {"ErrImagePull", "ImagePullBackOff"} and _PASSING.search(message) is not None
    return Finding(Reason.IMAGE_PULL_FAILED, message or f"{reason}.", stalled=not passing, since=pod.scheduled_at)


def _refused(pod: PodView, reason: str, message: str) -> Finding:
    since = pod.scheduled_at or pod.created_at
    if "no space left" in message:
        return Finding(Reason.DISK_FULL, message, since=since)
    if _MISSING.search(message):
        return Finding(Reason.REFERENCE_MISSING, message, since=since)
    return Finding(Reason.CONTAINER_REFUSED, message or f"{reason}.", since=since)


def _volume(pod: PodView) -> Finding | None:
    later = max((event.at for event in pod.events if event.reason in _VOLUMES_ARE_THERE), default=0.0)
    attach = _newest(pod, "FailedAttachVolume")
    if attach is not None and attach.at > later:
        shared = "multi-attach" in attach.message.lower()
        reason = Reason.VOLUME_MULTI_ATTACH if shared else Reason.WAITING_FOR_VOLUME
        return Finding(reason, attach.message, since=attach.at)
    mount = _newest(pod, "FailedMount")
    if mount is None or mount.at <= later:
        return None
    reason = Reason.REFERENCE_MISSING if _MISSING.search(mount.message) else Reason.WAITING_FOR_VOLUME
    return Finding(reason, mount.message, since=mount.at)


def _sandbox(pod: PodView) -> Finding | None:
    event = _newest(pod, "FailedCreatePodSandBox")
    return None if event is None else Finding(Reason.WAITING_FOR_NODE, event.message, since=event.at)


def _making(pod: PodView) -> Finding:
    pulling, pulled = _newest(pod, "Pulling"), _newest(pod, "Pulled")
    if pulling is not None and (pulled is None or pulled.at < pulling.at):
        return Finding(Reason.IMAGE_PULLING, f"{pulling.message.rstrip('.')}.", since=pulling.at)
    return Finding(Reason.STARTING, f"Its container is being made on node {pod.node}.", since=pod.scheduled_at)


def _newest(pod: PodView, reason: str, word: str = "") -> EventView | None:
    found = [event for event in pod.events if event.reason == reason and word in event.message]
    return max(found, key=lambda event: event.at, default=None)
