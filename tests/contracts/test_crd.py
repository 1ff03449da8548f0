"""The kind's schema and `octavo_operator.api` are the same fields; every field is described, and nothing is defaulted."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
import pytest

from octavo_operator import api

ROOT = Path(__file__).parents[2]
CRD = ROOT / "crds" / "llmdeployments.yaml"
ARGUMENTS = ROOT / "operator" / "octavo_operator" / "desired" / "arguments.py"
FREE_ARGUMENTS = {"--dest", "--status-port", "--max-num-batched-tokens"}  # of `octavo download`; has no field
MOST_BYTES = 150_000  # client-side apply keeps the whole kind in an annotation of at most 262,144
SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}

Schema = dict[str, Any]


def walk(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema from this one on, with its path: `spec.model.uri`, `[]` for items."""
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from walk(below, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], f"{path}.*")


def without_none(annotation: Any) -> Any:
    """`int` of `int | None`, and what Annotated wraps."""
    if get_origin(annotation) is Annotated:
        return without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        left = [member for member in get_args(annotation) if member is not NoneType]
        return left[0] if len(left) == 1 else frozenset(left)
    return annotation


def differences(struct: type[msgspec.Struct], schema: Schema, path: str) -> Iterator[str]:
    """Where a struct and a schema disagree."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    if set(fields) != set(schema["properties"]):
        yield f"{path}: {sorted(set(fields) ^ set(schema['properties']))} on one side only"
        return
    needed = {name for name, field in fields.items() if field.required}
    required = set(schema.get("required", ()))
    if needed != required:
        yield f"{path}: required {sorted(required)}, but api.py needs {sorted(needed)}"
    for name, field in fields.items():
        yield from type_differences(without_none(field.type), schema["properties"][name], f"{path}.{name}".lstrip("."))


def type_differences(annotation: Any, schema: Schema, path: str) -> Iterator[str]:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        yield from differences(annotation, schema, path)
        return
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation == frozenset({int, str}):
        agree = schema.get("x-kubernetes-int-or-string") is True
    elif origin is Literal:
        agree = schema["type"] == "string" and set(schema["enum"]) == set(arguments)
    elif origin is tuple:
        agree = schema["type"] == "array"
        yield from type_differences(arguments[0], schema["items"], f"{path}[]")
    elif origin is Mapping:
        texts = schema.get("additionalProperties", {}).get("type") == "string"
        agree = schema["type"] == "object" and texts == (arguments[1] is str)
    else:
        agree = schema["type"] == SCALARS[annotation]
    if not agree:
        yield f"{path}: {annotation} in api.py, {schema} in the CRD"


def test_the_spec_has_exactly_the_fields_and_types_of_the_api_module(schema: Schema) -> None:
    assert not list(differences(api.Spec, schema["properties"]["spec"], ""))


def test_the_kind_has_the_names_of_the_api_module(crd: dict[str, Any]) -> None:
    names = crd["spec"]["names"]
    (version,) = crd["spec"]["versions"]
    assert (crd["spec"]["group"], version["name"], names["kind"], names["plural"]) == (
        api.GROUP,
        api.VERSION,
        api.KIND,
        api.PLURAL,
    )
    assert crd["metadata"]["name"] == f"{api.PLURAL}.{api.GROUP}"
    assert (names["shortNames"], names["categories"]) == (["llmd"], ["llm"])


def test_every_field_is_described_for_kubectl_explain(schema: Schema) -> None:
    bare = [
        path
        for path, below in walk(schema)
        if not below.get("description") and not path.endswith(("[]", ".*")) and not path.startswith("metadata")
    ]
    assert not bare


def test_every_optional_scalar_of_the_spec_says_what_it_means_when_left_out(schema: Schema) -> None:
    def leaves(below: Schema, path: str) -> Iterator[str]:
        for name, field in below.get("properties", {}).items():
            place = f"{path}.{name}"
            if "properties" in field:
                yield from leaves(field, place)
            elif name not in below.get("required", ()) and "Default: " not in field["description"]:
                yield place

    said_otherwise = {".cache.sharedPVC.size"}  # it is given, or claimName is
    assert set(leaves(schema["properties"]["spec"], "")) <= said_otherwise


def test_nothing_but_the_number_of_replicas_is_defaulted_by_the_schema(schema: Schema) -> None:
    """Two writers would disagree for ever about a field that neither wrote. But the scale subresource has to have a number."""
    assert [path for path, below in walk(schema) if "default" in below] == ["spec.replicas"]


def test_the_kind_is_small_enough_for_client_side_apply() -> None:
    assert len(CRD.read_bytes()) < MOST_BYTES


def test_lists_and_texts_of_the_spec_are_bounded(schema: Schema) -> None:
    """Rules in CEL are priced by the largest object that the schema allows."""
    boundless = [
        path
        for path, below in walk(schema["properties"]["spec"])
        if (below.get("type") == "array" and "maxItems" not in below)
        or (below.get("type") == "string" and not {"maxLength", "enum"} & set(below))
        or ("additionalProperties" in below and "maxProperties" not in below)
    ]
    assert not boundless


def test_every_rule_says_what_to_write(schema: Schema) -> None:
    said = ("write ", "leave ", "use ")
    rules = [rule for _, below in walk(schema) for rule in below.get("x-kubernetes-validations", ())]
    assert len(rules) > 50
    assert not [rule["message"] for rule in rules if not any(word in rule["message"] for word in said)]


def test_a_text_that_may_hold_a_secret_is_judged_from_above_it(schema: Schema) -> None:
    """The API server repeats a text that breaks a rule of its own, and the refusal ends in the log of a pipeline."""
    spoken = {
        path for path, below in walk(schema) if below.get("type") == "string" and "x-kubernetes-validations" in below
    }
    model = "spec.model"
    risky = {f"{model}.uri", f"{model}.endpoint", f"{model}.credentials.secretRef.name"}
    risky |= {path for path, _ in walk(schema) if path.startswith(("spec.engine.extraArgs", "spec.pod.env[].value"))}
    assert not spoken & risky


def test_refused_arguments_each_have_a_remedy(schema: Schema) -> None:
    arguments = schema["properties"]["spec"]["properties"]["engine"]["properties"]["extraArgs"]
    rule = arguments["x-kubernetes-validations"][0]
    refused = re.findall(r"'(--?[a-z-]+)'", rule["rule"])
    assert re.findall(r"'(--?[a-z-]+)'(?!:)", rule["messageExpression"]) == refused
    remedied = re.findall(r"'(--?[a-z-]+)':", rule["messageExpression"])
    assert refused == remedied
    assert len(set(refused)) == len(refused)
    of_the_operator = set(re.findall(r'"(--[a-z-]+)"', ARGUMENTS.read_text())) - FREE_ARGUMENTS
    assert of_the_operator <= set(refused)


def test_no_replacement_of_the_scale_subresource_is_missing(crd: dict[str, Any]) -> None:
    (version,) = crd["spec"]["versions"]
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }


def test_columns_show_fields_that_the_schema_has(crd: dict[str, Any], schema: Schema) -> None:
    paths = {path for path, _ in walk(schema)} | {"metadata.creationTimestamp"}
    (version,) = crd["spec"]["versions"]
    columns = {column["name"]: column for column in version["additionalPrinterColumns"]}
    assert not [name for name, column in columns.items() if column["jsonPath"].lstrip(".") not in paths]
    assert [name for name, column in columns.items() if not column.get("priority")] == [
        "Model",
        "Phase",
        "Ready",
        "Reason",
        "Age",
    ]


@pytest.mark.parametrize("later", ["canary", "scaleToZero", "nodeLocal", "adapters", "multiNode", "routing", "limits"])
def test_no_field_stands_there_without_its_effect(schema: Schema, later: str) -> None:
    assert not [path for path, _ in walk(schema) if path.rpartition(".")[2] == later]
