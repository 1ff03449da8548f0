"""The last five changes of the wanted number, as `status.scaling.decisions` shows them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from octavo_operator.timestamp import format_time, parse_time

KEPT = 5


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the wanted number of replicas."""

    at: float
    before: int
    after: int
    reason: str


def record(changes: tuple[Change, ...], change: Change) -> tuple[Change, ...]:
    """With one more, the oldest dropped. A decision to stay is not a change."""
    return changes if change.before == change.after else (*changes, change)[-KEPT:]


def to_status(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """Oldest first."""
    return [
        {"at": format_time(change.at), "from": change.before, "to": change.after, "reason": change.reason}
        for change in changes
    ]


def from_status(entries: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    """As they were before the operator restarted; entries that cannot be read are left out."""
    read = (_read(entry) for entry in entries)
    return tuple(change for change in read if change is not None)[-KEPT:]


def _read(entry: Mapping[str, Any]) -> Change | None:
    at = parse_time(entry.get("at"))
    before, after = entry.get("from"), entry.get("to")
    if at is None or not isinstance(before, int) or not isinstance(after, int):
        return None
    return Change(at, before, after, str(entry.get("reason", "")))
