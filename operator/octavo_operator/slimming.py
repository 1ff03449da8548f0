"""What the cache keeps of an object: nearly everything of ours, little of anybody else's. Pure.

Of the spec of our pods only node and requests: it is the larger part of a pod, and says little that the template of its
revision does not. Of a foreign pod only these, of a node what scheduling reads, of a foreign Secret a hash of each
value: no secret stays in memory. Fields that only managers and kubelets read are dropped.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from octavo_operator.kube_client import Raw
from octavo_operator.names import DEPLOYMENT
from octavo_operator.quantity import sum_requests

HASHES = "hashes"
"""Where a slim Secret has its hashes, by key."""

REQUESTS = "requests"
"""Where a slim Pod has its requests."""

_OVER = frozenset({"Succeeded", "Failed"})


def slim(raw: Mapping[str, Any]) -> Raw:
    """The object as it is kept."""
    kind, metadata = raw["kind"], dict(raw["metadata"])
    metadata.pop("managedFields", None)
    if kind == "Node":
        return {"kind": kind, "metadata": _named(metadata), "spec": _node_spec(raw), "status": _node_status(raw)}
    if kind == "Secret":
        return {"kind": kind, "metadata": metadata, "type": raw.get("type", ""), **_secret_content(raw, is_ours(raw))}
    if kind == "Pod" and not is_ours(raw):
        return {"kind": kind, "metadata": _named(metadata), "node": node_of(raw), REQUESTS: requests_of(raw)}
    if kind == "Pod":
        return {**raw, "metadata": metadata, "spec": _pod_spec(raw), REQUESTS: requests_of(raw)}
    return {**raw, "metadata": metadata}


def is_ours(raw: Mapping[str, Any]) -> bool:
    """Whether a label names an LLMDeployment."""
    return DEPLOYMENT in (raw["metadata"].get("labels") or {})


def node_of(pod: Mapping[str, Any]) -> str:
    """The node on which a pod holds resources; empty when it holds none: not placed yet, or over."""
    over = (pod.get("status") or {}).get("phase") in _OVER
    name = "" if over else (pod.get("spec") or {}).get("nodeName") or ""
    return str(name)


def requests_of(pod: Mapping[str, Any]) -> Mapping[str, int]:
    """What a pod asks of its node, in canonical units. The pod may be a slim one."""
    if REQUESTS in pod:
        known: Mapping[str, int] = pod[REQUESTS]
        return known
    return sum_requests(pod.get("spec") or {})


def hash_of(value: bytes) -> str:
    """As the runtime's key file has it."""
    return f"sha256:{hashlib.sha256(value).hexdigest()}"


def _named(metadata: Mapping[str, Any]) -> Raw:
    kept = ("name", "namespace", "uid", "resourceVersion", "labels", "creationTimestamp")
    return {name: metadata[name] for name in kept if name in metadata}


def _pod_spec(raw: Mapping[str, Any]) -> Raw:
    node = (raw.get("spec") or {}).get("nodeName")
    return {"nodeName": node} if node else {}


def _node_spec(raw: Mapping[str, Any]) -> Raw:
    spec = raw.get("spec") or {}
    return {name: spec[name] for name in ("unschedulable", "taints") if name in spec}


def _node_status(raw: Mapping[str, Any]) -> Raw:
    status = raw.get("status") or {}
    ready = [
        {"type": "Ready", "status": condition.get("status")}
        for condition in status.get("conditions") or ()
        if condition.get("type") == "Ready"
    ]
    return {"allocatable": status.get("allocatable") or {}, "conditions": ready}


def _secret_content(raw: Mapping[str, Any], ours: bool) -> Raw:
    """Ours holds hashes anyway, and is compared with what it should be."""
    data = raw.get("data") or {}
    if ours:
        return {"apiVersion": "v1", "data": data}
    return {HASHES: {key: hash_of(base64.b64decode(value).strip()) for key, value in data.items()}}
