"""`listed`: several values within a sentence."""

from collections.abc import Sequence


def listed(values: Sequence[object], joint: str) -> str:
    """`1, 2 or 4`. At least one value."""
    *first, last = map(str, values)
    return f"{', '.join(first)} {joint} {last}" if first else last
