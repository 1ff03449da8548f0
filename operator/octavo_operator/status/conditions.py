"""`Condition` and `set_conditions`: metav1.Condition with its exact semantics.

A transition time moves only when `status` changes; every condition carries the generation that it was judged for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from octavo_operator.reasons import Reason
from octavo_operator.timestamp import format_time

_LONGEST_MESSAGE = 1000


class ConditionType(StrEnum):
    """In the order in which they are listed."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    AVAILABLE = "Available"
    MODEL_RESOLVED = "ModelResolved"
    MODEL_CACHED = "ModelCached"
    MEMORY_FITS = "MemoryFits"
    CAPACITY_AVAILABLE = "CapacityAvailable"
    SCALING_ACTIVE = "ScalingActive"
    DEGRADED = "Degraded"
    FEATURE_UNAVAILABLE = "FeatureUnavailable"
    UPGRADE_AVAILABLE = "UpgradeAvailable"
    SUSPENDED = "Suspended"


@dataclass(frozen=True, slots=True)
class Condition:
    """One statement about the resource; a statement that does not apply is left out."""

    type: ConditionType
    status: bool
    reason: Reason
    message: str


def set_conditions(
    previous: Sequence[Mapping[str, Any]], new: Iterable[Condition], generation: int, now: float
) -> list[dict[str, Any]]:
    """The list for `.status.conditions`. Conditions that are not in `new` go."""
    before = {condition.get("type"): condition for condition in previous}
    order = list(ConditionType)
    return [
        _as_object(condition, before.get(condition.type.value, {}), generation, now)
        for condition in sorted(new, key=lambda condition: order.index(condition.type))
    ]


def _as_object(condition: Condition, before: Mapping[str, Any], generation: int, now: float) -> dict[str, Any]:
    status = "True" if condition.status else "False"
    since = before.get("lastTransitionTime")
    return {
        "type": condition.type.value,
        "status": status,
        "reason": condition.reason.value,
        "message": clipped(condition.message),
        "observedGeneration": generation,
        "lastTransitionTime": since if since and before.get("status") == status else format_time(now),
    }


def clipped(text: str, longest: int = _LONGEST_MESSAGE) -> str:
    """A message that a person reads to the end."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def with_remedy(text: str, remedy: str) -> str:
    """The text and what to do. Where they are too long together the text alone is clipped: the remedy is what a person
    needs, and what `kubectl octavo why` looks for at the end.
    """
    remedy = clipped(remedy)
    room = max(1, _LONGEST_MESSAGE - len(remedy) - 1)
    return f"{clipped(text, room)} {remedy}".strip()
