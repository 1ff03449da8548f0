"""How sizes, counts and lists are written in settings: `32k`, `4GiB`, `auto`, `["a", "b"]`.

Each function takes what a flag, the environment or a file gave and returns the value, or raises ValueError with the end
of a sentence that begins with the setting's name.
"""

import json
import re
from typing import Annotated, Any

from pydantic import BeforeValidator

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(i?)[bB]?\s*")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_LARGEST = 1 << 60
AUTO_LENGTH = -1


def token_count(value: Any) -> Any:
    """`4096`, `32k` (x 1,000), `32K` (x 1,024), or `auto`, which is -1."""
    if not isinstance(value, str):
        return value
    if value.strip().lower() == "auto":
        return AUTO_LENGTH
    match = _AMOUNT.fullmatch(value)
    if match is None or value.lower().endswith("b"):
        if value.strip().lstrip("-").isdecimal():
            return int(value)
        raise ValueError(f"must be a number of tokens such as 4096 or 32k, got {value!r}")
    number, unit, binary = match.groups()
    base = 1024 if binary or unit.isupper() else 1000
    return _whole(float(number) * base ** _POWERS[unit.lower()], value)


def byte_size(value: Any) -> Any:
    """`1048576`, `4GiB` and `4Gi` (x 1,024^3), `4GB` and `4G` (x 1,000^3)."""
    if not isinstance(value, str):
        return value
    match = _AMOUNT.fullmatch(value)
    if match is None:
        raise ValueError(f"must be a size in bytes such as 4GiB, got {value!r}")
    number, unit, binary = match.groups()
    return _whole(float(number) * (1024 if binary else 1000) ** _POWERS[unit.lower()], value)


def names(value: Any) -> Any:
    """One name, several, or a JSON list of them; the environment separates them by commas. Empty ones are left out."""
    if isinstance(value, str) and not value.strip().startswith("["):
        value = [part.strip() for part in value.split(",")]
    found = _listed(value)
    return tuple(name for name in found if name != "") if isinstance(found, tuple) else found


def keys(value: Any) -> Any:
    """One key, never split, or a list of them. An empty one is refused: it would open the door to everybody."""
    found = _listed(value)
    if isinstance(found, tuple):
        found = tuple(key.strip() if isinstance(key, str) else key for key in found)
        if not found or "" in found:
            raise ValueError("must not be empty; leave it out to serve without keys")
    return found


def _listed(value: Any) -> Any:
    """A string alone, a list or a JSON list in a string, as a tuple."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list | tuple) and len(value) == 1 and isinstance(value[0], str):
        text = value[0].strip()
        value = _json_list(text) if text.startswith("[") else value
    return tuple(value) if isinstance(value, list) else value


def _json_list(text: str) -> list[Any]:
    try:
        return list(json.loads(text))
    except ValueError as error:
        raise ValueError("must be a JSON list, since it begins with [") from error


def _whole(amount: float, written: str) -> int:
    if amount != int(amount) or amount > _LARGEST:
        raise ValueError(f"must be a whole number below 2^60, got {written!r}")
    return int(amount)


TokenCount = Annotated[int, BeforeValidator(token_count)]
ByteSize = Annotated[int, BeforeValidator(byte_size)]
Names = Annotated[tuple[str, ...], BeforeValidator(names)]
Keys = Annotated[tuple[str, ...], BeforeValidator(keys)]
