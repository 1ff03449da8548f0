"""`read_documents`: the objects in a manifest, with the values that kubectl would send to the API server.

kubectl reads YAML 1.1 by rules that differ from PyYAML's: 1e5 is a number, y is true, 2024-05-01 and 12:30 are text, and
the keys of a map become text. What JSON cannot hold, and what is written twice, is refused. Knows no kind.
"""

import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from octavo_operator.plugin.errors import PluginError

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_TRUE, _FALSE = ("y", "yes", "true", "on"), ("n", "no", "false", "off")
_NULL = re.compile(r"(?:|~|null|Null|NULL)\Z")  # the library matches from the beginning only
_BOOL = re.compile(
    rf"(?:{'|'.join(form for word in (*_TRUE, *_FALSE) for form in (word, word.title(), word.upper()))})\Z"
)
_INT = re.compile(r"[-+]?(?:0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)\Z")
_FLOAT = re.compile(
    r"[-+]?(?:(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))\Z|\.(?:nan|NaN|NAN)\Z"
)
_MOST = 1 << 63  # whole numbers beyond this are kept as fractions, as JSON's readers in Go do


def read_documents(path: str, place: str) -> list[dict[str, Any]]:
    """All maps of the file, those in Lists too. `path` - is standard input; `place` is what errors call it.

    Raises PluginError.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PluginError(f"{place} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PluginError(f"{place} is not text in UTF-8.") from error
    try:
        return [item for document in _parsed(text) for item in _items(document)]
    except yaml.MarkedYAMLError as error:  # its text would quote the line, which may hold a secret
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise PluginError(
            f"{place} is not YAML that kubectl could send: {error.problem or error.context}{line}."
        ) from None
    except yaml.YAMLError:
        raise PluginError(f"{place} is not YAML: it holds characters that are not allowed.") from None
    except RecursionError:
        raise PluginError(f"{place} is nested too deeply, or holds itself.") from None


def _parsed(text: str) -> list[Any]:
    """JSON may be indented by tabs, which YAML does not allow."""
    if text.lstrip().startswith("{"):
        try:
            return [
                json.loads(
                    text,
                    parse_int=lambda digits: _fitting(int(digits)),
                    parse_float=lambda digits: _fitting(float(digits)),
                )
            ]
        except json.JSONDecodeError:
            pass  # YAML has such maps too
    return list(yaml.load_all(text, _Loader))


def _items(document: Any) -> Iterator[dict[str, Any]]:
    """A list of objects, as `kubectl get -o yaml` writes it, holds documents of its own."""
    if not isinstance(document, dict):
        return
    items = document.get("items")
    if isinstance(items, list) and str(document.get("kind", "")).endswith("List"):
        for item in items:
            yield from _items(item)
    else:
        yield document


class _Loader(yaml.SafeLoader):
    """YAML -> what JSON can hold. Whatever it raises is a YAMLError with the place."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  # PyYAML's own are left out, dates and sets too; ours stand at the end of the file
    yaml_constructors = {}  # noqa: RUF012

    def mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        """A key that stands twice is refused: kubectl takes the last without a word."""
        own = [(self.key_text(key), key) for key, _ in node.value if key.tag != _MERGE]
        seen = set()
        for text, key in own:
            if text in seen:
                raise _refused(f"{text} stands twice in one place, and kubectl would take the last", key)
            seen.add(text)
        self.flatten_mapping(node)
        return {self.key_text(key): self.construct_object(value, deep=True) for key, value in node.value}

    def sequence(self, node: yaml.SequenceNode) -> list[Any]:
        return list(self.construct_sequence(node, deep=True))

    def key_text(self, node: yaml.Node) -> str:
        """Numbers and truth values as JSON writes them."""
        key = self.construct_object(node, deep=True)
        if isinstance(key, bool):
            return str(key).lower()
        if isinstance(key, str | int | float):
            return str(key)
        raise _refused("a key of a map is not text", node)

    def nothing(self, _: yaml.ScalarNode) -> None:
        return None

    def text(self, node: yaml.ScalarNode) -> str:
        return str(node.value)

    def truth(self, node: yaml.ScalarNode) -> bool:
        return node.value.lower() in _TRUE

    def number(self, node: yaml.ScalarNode) -> int | float | str:
        """Whole numbers in any base, and fractions."""
        written: str = node.value
        text = written.replace("_", "")
        try:
            value = (
                _whole(text) if _INT.match(text) else float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
            )
        except ValueError:  # 089: a leading nought, and no octal digits
            value = float(text)
        if not math.isfinite(value):
            if "." not in text:  # 7e12345: too large for a number, so text
                return written
            raise _refused(f"{written} is not a number that JSON has", node)
        return _fitting(value)


def _fitting(value: int | float) -> int | float:
    """A whole fraction is a whole number, as long as 64 bits hold it."""
    whole = value if isinstance(value, int) or not value.is_integer() else int(value)
    return whole if -_MOST <= whole < _MOST else float(whole)


def _whole(text: str) -> int:
    """0x, 0o and 0b, and a leading 0 for octal."""
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.lstrip("+"))
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    return sign * (int(digits, 8) if octal else int(digits, 0))


def _refused(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)


_Loader.add_implicit_resolver(f"{_TAG}null", _NULL, ["", "~", "n", "N"])
_Loader.add_implicit_resolver(f"{_TAG}bool", _BOOL, list("yYnNtTfFoO"))
_Loader.add_implicit_resolver(f"{_TAG}int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+.0123456789"))
_Loader.add_implicit_resolver(_MERGE, re.compile(r"<<\Z"), ["<"])
_Loader.add_constructor(f"{_TAG}null", _Loader.nothing)
_Loader.add_constructor(f"{_TAG}str", _Loader.text)
_Loader.add_constructor(f"{_TAG}bool", _Loader.truth)
_Loader.add_constructor(f"{_TAG}int", _Loader.number)
_Loader.add_constructor(f"{_TAG}float", _Loader.number)
_Loader.add_constructor(f"{_TAG}map", _Loader.mapping)
_Loader.add_constructor(f"{_TAG}seq", _Loader.sequence)
