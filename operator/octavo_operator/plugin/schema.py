"""`complaints`: what the API server would refuse of an LLMDeployment, told without one.

Reads the CRD that is packed with the plugin: fields that do not exist, types and bounds (JSON Schema), and, wherever these
are right, the CRD's own rules (`cel_rules.py`). Knows neither files nor clusters.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence, Sized
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from octavo_operator.plugin.cel_rules import Steps, broken_rules
from octavo_operator.plugin.complaint import Complaint, below, field_of
from octavo_operator.plugin.object_meta import OBJECT_META
from octavo_operator.status.redaction import redact
from octavo_operator.wording import listed

Schema = Mapping[str, Any]

_WANTED = {
    "object": "fields below it",
    "array": "a list, each item after '- '",
    "string": "text in quotes",
    "integer": "a whole number without quotes or unit",
    "number": "a number without quotes or unit",
    "boolean": "true or false",
}
_SCALARS = str | int | float | bool


def complaints(raw: Mapping[str, Any]) -> list[Complaint]:
    """All of them, by field; empty for what the API server would take.

    `raw` is the whole object with JSON's values. Its status is the operator's and is not looked at.
    """
    written = without_nulls({name: value for name, value in raw.items() if name != "status"})
    errors = list(_validator().iter_errors(written))
    found = [each for error in errors for each in _of(error)]
    found += broken_rules(written, crd_schema(), unsound=_at_or_above(errors))
    first: dict[str, Complaint] = {}
    for each in found:
        # One is enough for a field: a wrong type breaks its bounds, too. What is said of the whole object names no field.
        first.setdefault(each.field or each.message, each)
    return sorted(first.values(), key=lambda each: _order(each.field))


def _at_or_above(errors: Sequence[ValidationError]) -> set[Steps]:
    """Each value that is wrong or holds something wrong. A field that there is not spoils only the value that it stands in,
    where a rule would miss the field that it was meant to be.
    """
    unsound = set()
    for error in errors:
        path = tuple(error.absolute_path)
        least = len(path) if error.validator == "additionalProperties" else 0
        unsound |= {path[:length] for length in range(least, len(path) + 1)}
    return unsound


@cache
def crd_schema() -> Schema:
    """`openAPIV3Schema` of the version that the plugin speaks."""
    text = files("octavo_operator.plugin").joinpath("llmdeployments.yaml").read_text(encoding="utf-8")
    schema: Schema = yaml.safe_load(text)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def without_nulls(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The whole object as the API server goes on with it: fields without a value are dropped where the schema knows them."""
    return dict(_without_nulls(raw, _schema()))


def _without_nulls(value: Any, schema: Schema) -> Any:
    if isinstance(value, list):
        return [_without_nulls(item, schema.get("items", {})) for item in value]
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    if not isinstance(value, Mapping) or not (known or others):
        return value
    schemas = {name: known.get(name, others) or {} for name in value}
    return {name: _without_nulls(item, schemas[name]) for name, item in value.items() if item is not None}


@cache
def _schema() -> dict[str, Any]:
    """With the metadata, of which the CRD describes only what its rules read."""
    schema = _strict(crd_schema())
    schema["properties"]["metadata"] = OBJECT_META
    return schema


@cache
def _validator() -> Any:
    whole = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    return extend(Draft202012Validator, type_checker=whole)(_schema())


def _strict(schema: Schema) -> dict[str, Any]:
    """The structural schema as JSON Schema: unknown fields are refused, as kubectl's strict validation does."""
    strict = dict(schema)
    if schema.get("x-kubernetes-int-or-string"):
        strict["type"] = ["string", "integer"]
    if "properties" in schema:
        strict["properties"] = {name: _strict(each) for name, each in schema["properties"].items()}
        strict["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            strict[key] = _strict(schema[key])
    return strict


def _of(error: ValidationError) -> Iterator[Complaint]:
    schema: Any = error.schema
    limit: Any = error.validator_value
    value: Any = error.instance
    field = field_of(error.absolute_path)
    match error.validator:
        case "additionalProperties":
            known = schema["properties"]
            unknown = [name for name in value if name not in known]
            yield from (Complaint(below(field, name), _unknown(field, name, known)) for name in unknown)
        case "required":
            yield from (_missing(below(field, name), schema, name) for name in limit if name not in value)
        case "type":
            yield Complaint(field, _wrong_type(value, limit))
        case "enum":
            yield Complaint(field, f"{_shown(value)} is not known; write {listed(limit, 'or')}")
        case "minimum" | "maximum":
            size = "small" if value < limit else "large"
            yield Complaint(field, f"{_shown(value)} is too {size}; {_bounds(schema)}")
        case "pattern":
            yield Complaint(field, f"it will not do; write {schema['description']}")
        case _:
            yield Complaint(field, _wrong_length(str(error.validator), limit, value))


def _unknown(parent: str, name: str, known: Mapping[str, Any]) -> str:
    """Names differ by case or a letter more often than by anything else."""
    lowered = {each.lower(): each for each in known}
    near = difflib.get_close_matches(str(name).lower(), lowered, n=1, cutoff=0.65)
    if near:
        return f"there is no such field; did you mean {below(parent, lowered[near[0]])}?"
    return f"there is no such field; {parent or 'an LLMDeployment'} has {listed(sorted(known), 'and')}"


def _missing(field: str, schema: Schema, name: str) -> Complaint:
    about = schema["properties"][name].get("description", "").split(". ")[0].rstrip(".")
    return Complaint(field, f"it is missing; write it: {about}")


def _wrong_type(value: object, wanted: str | Sequence[str]) -> str:
    """A value of the wrong shape is not repeated: it may be a secret that stands where its reference should."""
    names = [wanted] if isinstance(wanted, str) else wanted
    right = " or ".join(_WANTED[name] for name in names)
    if value is None:
        return f"it has no value; write {right}"
    if "object" in names or "array" in names or not isinstance(value, _SCALARS):
        return f"{_kind(value)} will not do; write {right}"
    return f"{_shown(value)} will not do; write {right}"


def _kind(value: object) -> str:
    if isinstance(value, Mapping):
        return "a map of fields"
    return "a list" if isinstance(value, list) else "a single value"


def _bounds(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None or most is None:
        return f"write at least {least}" if most is None else f"write at most {most}"
    return f"write from {least} to {most}"


def _wrong_length(keyword: str, limit: int, value: Sized) -> str:
    """`keyword`: minLength, maxItems and so on."""
    least = keyword.startswith("min")
    if least and not value:
        return "it is empty; write something, or leave the field out"
    unit = {"Length": "characters", "Items": "items", "Properties": "entries"}[keyword[3:]]
    return f"{len(value)} {unit} are too {'few' if least else 'many'}; write at {'least' if least else 'most'} {limit}"


def _shown(value: object) -> str:
    text = redact(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else f"{text[:57]}..."


def _order(field: str) -> list[tuple[str, int]]:
    """Names as text, items of a list by their number."""
    return [(name, int(number or 0)) for name, number in re.findall(r"([^\[\]]+)|\[(\d+)\]", field)]
