"""RFC 3339 times, as Kubernetes writes them, <-> seconds since the epoch."""

from datetime import UTC, datetime


def format_time(seconds: float) -> str:
    """`2026-01-31T12:00:00Z`; parts of a second are dropped, as metav1.Time does."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str | None) -> float | None:
    """None for an absent or unreadable time: annotations may be edited by anybody."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
