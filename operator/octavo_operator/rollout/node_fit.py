"""Whether a node may take a pod at all: selector, required node affinity, taints. What is free there is `capacity.py`.

The scheduler's own rules for these three; it decides on more (spread, affinity between pods, volumes), so a yes here is
an estimate and a no is certain.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from octavo_operator.observed import NodeView

_KEEPS_OUT = ("NoSchedule", "NoExecute")


def matches(node: NodeView, pod_spec: Mapping[str, Any]) -> bool:
    """The node is of the kind that the pod asks for."""
    selector: Mapping[str, str] = pod_spec.get("nodeSelector") or {}
    if any(node.labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(_term(node, term) for term in required.get("nodeSelectorTerms") or ())


def tolerates(node: NodeView, pod_spec: Mapping[str, Any]) -> bool:
    """No taint of the node keeps the pod out."""
    tolerations: Sequence[Mapping[str, Any]] = pod_spec.get("tolerations") or ()
    return all(
        any(_tolerated(taint, toleration) for toleration in tolerations)
        for taint in node.taints
        if taint.get("effect") in _KEEPS_OUT
    )


def _term(node: NodeView, term: Mapping[str, Any]) -> bool:
    """All its requirements hold; a term without any matches nothing."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_requirement(node.labels, one) for one in expressions) and all(
        _requirement({"metadata.name": node.name}, one) for one in fields
    )


def _requirement(labels: Mapping[str, str], requirement: Mapping[str, Any]) -> bool:
    value = labels.get(requirement.get("key", ""))
    values = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _numbers(value, values, 1)
        case "Lt":
            return _numbers(value, values, -1)
    return False


def _numbers(value: str | None, values: Sequence[str], sign: int) -> bool:
    try:
        return value is not None and sign * int(value) > sign * int(values[0])
    except (ValueError, IndexError):
        return False


def _tolerated(taint: Mapping[str, Any], toleration: Mapping[str, Any]) -> bool:
    effect = toleration.get("effect")
    if effect and effect != taint.get("effect"):
        return False
    key = toleration.get("key")
    exists = toleration.get("operator") == "Exists"
    if not key:
        return exists
    return key == taint.get("key") and (exists or (toleration.get("value") or "") == (taint.get("value") or ""))
