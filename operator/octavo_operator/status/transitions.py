"""`status_events`: which Events a change of the status is worth. Reasons are those of `Reason`, so they can be filtered."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from octavo_operator.conditions import condition
from octavo_operator.explanations import EXPLANATIONS
from octavo_operator.reasons import Reason


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """One line in `kubectl describe`."""

    warning: bool
    reason: str
    message: str


def status_events(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[StatusEvent, ...]:
    """None for progress within one reason: a download's percents are no news."""
    return (*_reason_changes(old, new), *_rollback(old, new))


def _reason_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[StatusEvent]:
    ready, before = condition(new, "Ready"), condition(old, "Ready")
    if not ready or (ready.get("reason"), ready.get("status")) == (before.get("reason"), before.get("status")):
        return
    # What needs a hand, and what keeps pods waiting, is a warning; progress is not.
    warning = ready.get("status") != "True" and _has_remedy(str(ready.get("reason", "")))
    yield StatusEvent(warning, str(ready["reason"]), str(ready.get("message", "")))


def _has_remedy(reason: str) -> bool:
    return reason not in set(Reason) or bool(EXPLANATIONS[Reason(reason)].remedy)


def _rollback(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[StatusEvent]:
    last = new.get("rollout", {}).get("lastRollback") or {}
    if not last or last == old.get("rollout", {}).get("lastRollback"):
        return
    message = f"Back from revision {last.get('from', '')} to {last.get('to', '')}: {last.get('reason', '')}."
    yield StatusEvent(True, "RolledBack", message)
