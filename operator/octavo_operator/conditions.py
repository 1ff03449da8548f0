"""`condition`: one of the conditions in the raw status of any object."""

from collections.abc import Mapping
from typing import Any


def condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Empty when it is not there."""
    return next((each for each in status.get("conditions") or () if each.get("type") == kind), {})
