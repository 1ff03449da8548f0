"""How long a server that answered 429 wants to be left alone. Pure: the time of day is given."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

LONGEST = 3600.0  # seconds: a server that says more is asked again after this
_RATE_LIMIT = re.compile(r";\s*t\s*=\s*(\d{1,9})\b")


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds, of `Retry-After` (seconds or a date) or of `RateLimit` (`"api";r=0;t=55`); None when neither says."""
    seconds = _of_retry_after(headers.get("Retry-After", "").strip(), now)
    if seconds is None:
        found = _RATE_LIMIT.search(headers.get("RateLimit", ""))
        seconds = float(found[1]) if found else None
    return None if seconds is None else min(max(0.0, seconds), LONGEST)


def _of_retry_after(text: str, now: float) -> float | None:
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except (ValueError, OverflowError):
        return None
