"""JSON body -> struct, or an error that names the field.

Decoding is msgspec's; what it refuses is put into a short sentence here. The input is never echoed at length.
"""

import asyncio
import json
import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from octavo_runtime.errors import InvalidRequestError, PayloadTooLargeError, UnsupportedMediaError

T = TypeVar("T")

_MAX_DIAGNOSED_BYTES = 1 << 20  # a larger broken body is refused without a search for its broken field
_BODY_SECONDS = 60.0  # for the whole body; a client that stalls must not hold up a drain
_MAX_SHOWN = 200  # characters of a sentence that may hold the client's own input
_AT = re.compile(r"^(?P<what>.*?)(?: - at (?:`key` in )?`\$\.?(?P<path>.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"missing required field `(?P<field>[^`]+)`")
_WORDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_CODE = re.compile(r"`([a-z |]+)`")


async def read_body(request: web.Request, decode: Callable[[bytes], T]) -> T:
    """Read and decode the body. Raises UnsupportedMediaError, PayloadTooLargeError, InvalidRequestError or 408."""
    content_type = request.content_type
    if content_type != "application/json" and not content_type.endswith("+json"):
        raise UnsupportedMediaError("The body must be JSON; send the header Content-Type: application/json.")
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            data = await request.read()
    except TimeoutError as error:
        raise web.HTTPRequestTimeout from error
    except web.HTTPRequestEntityTooLarge as error:
        raise PayloadTooLargeError(
            f"The body is larger than the {request.app._client_max_size} bytes accepted here."
        ) from error
    return decode_body(data, decode)


def decode_body(data: bytes, decode: Callable[[bytes], T]) -> T:
    """Decode JSON. Raises InvalidRequestError with `param` set where the fault has a place."""
    try:
        return decode(data)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error)) from error
    except RecursionError as error:
        raise InvalidRequestError("The body is nested too deeply.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(data, str(error)) from error


def _wrong_field(text: str) -> InvalidRequestError:
    """msgspec's sentence -> ours, e.g. "Expected `float | null`, got `str` - at `$.top_p`"."""
    match = _AT.match(text)
    what, path = (match["what"], match["path"] or "") if match else (text, "")
    missing = _MISSING.search(what)
    if missing:
        field = f"{path}.{missing['field']}" if path else missing["field"]
        return InvalidRequestError(f"{field} is required.", field)
    plain = _CODE.sub(_in_words, what)
    plain = plain[:1].lower() + plain[1:]
    path = path.partition("[...]")[0]
    plain = plain if len(plain) <= _MAX_SHOWN else plain[:_MAX_SHOWN] + "..."
    if not path:
        return InvalidRequestError(f"The body is wrong: {plain}.")
    return InvalidRequestError(f"{path}: {plain}.", path)


def _in_words(match: re.Match[str]) -> str:
    names = [name for name in match[1].split(" | ") if name != "null" or match[1] == "null"]
    return " or ".join(_WORDS.get(name, name) for name in names)


def _malformed(data: bytes, text: str) -> InvalidRequestError:
    """Broken JSON. NaN, Infinity and broken characters have a place that Python's lenient reader can still find."""
    if len(data) <= _MAX_DIAGNOSED_BYTES:
        try:
            lenient = json.loads(data.decode("utf-8", "surrogateescape"))
            found = _find_unwritable(lenient, "", 0)
        except (ValueError, RecursionError):
            found = None
        if found is not None:
            path, what = found
            return InvalidRequestError(f"{path}: {what}." if path else f"The body is wrong: {what}.", path or None)
    reason = text.removeprefix("JSON is malformed: ")
    return InvalidRequestError(f"The body is not valid JSON: {reason[:1].lower()}{reason[1:]}.")


def _find_unwritable(value: Any, path: str, depth: int) -> tuple[str, str] | None:
    """Path and fault of the first number or string that JSON cannot carry."""
    if isinstance(value, float) and not math.isfinite(value):
        return path, "expected a finite number"
    if isinstance(value, str) and not _is_text(value):
        return path, "expected valid UTF-8 text"
    if depth > 64:
        return None
    if isinstance(value, dict):
        for key, item in value.items():
            if not _is_text(key):
                return path, "expected valid UTF-8 in a field's name"
            found = _find_unwritable(item, f"{path}.{key[:64]}" if path else key[:64], depth + 1)
            if found is not None:
                return found
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found = _find_unwritable(item, f"{path}[{index}]", depth + 1)
            if found is not None:
                return found
    return None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
