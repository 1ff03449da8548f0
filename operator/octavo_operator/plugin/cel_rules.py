"""`broken_rules`: the rules of a CRD's schema (`x-kubernetes-validations`) that an object breaks, with their messages.

The rules are CEL (https://kubernetes.io/docs/reference/using-api/cel/), evaluated by Google's own library; of Kubernetes'
additions to the language those that our CRD uses are here: optional fields, text functions, quantities. Where the schema itself
is broken, the caller says so: a rule that expects right types would say nonsense there.
"""

from collections.abc import Container, Iterator, Mapping
from functools import cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from octavo_operator.plugin.complaint import Complaint, field_of
from octavo_operator.quantity import QuantityError, parse_quantity

Schema = Mapping[str, Any]
Steps = tuple[str | int, ...]
"""The way to a value: names of fields, places in lists."""


def broken_rules(
    value: Any, schema: Schema, unsound: Container[Steps] = frozenset(), at: Steps = ()
) -> Iterator[Complaint]:
    """Of this value and of all below it. `schema` is structural, as apiextensions.k8s.io/v1 has it.

    Rules of the values in `unsound` are not asked.
    """
    for rule in () if at in unsound else schema.get("x-kubernetes-validations", ()):
        if _evaluate(rule["rule"], value) is not True:
            yield Complaint((field_of(at) + rule.get("fieldPath", "")).removeprefix("."), _message(rule, value))
    for step, below, below_schema in _children(value, schema):
        yield from broken_rules(below, below_schema, unsound, (*at, step))


def _children(value: Any, schema: Schema) -> Iterator[tuple[str | int, Any, Schema]]:
    if isinstance(value, Mapping):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, below in value.items():
            below_schema = known.get(name, others)
            if isinstance(below_schema, Mapping):
                yield name, below, below_schema
    elif isinstance(value, list) and "items" in schema:
        yield from ((index, below, schema["items"]) for index, below in enumerate(value))


def _message(rule: Mapping[str, str], value: Any) -> str:
    made = _evaluate(rule["messageExpression"], value) if "messageExpression" in rule else None
    return made if isinstance(made, str) else rule["message"]


def _evaluate(expression: str, value: Any) -> Any:
    """None where it cannot be evaluated, which the API server counts as broken."""
    result = _program(expression).eval(data={"self": value})
    return None if result.type() == cel.Type.ERROR else result.plain_value()


@cache
def _program(expression: str) -> cel.Expression:
    return _environment().compile(expression)


@cache
def _environment() -> cel.Env:
    extensions = [ext_optional.ExtOptional(), ext_strings.ExtStrings()]
    return cel.NewEnv(variables={"self": cel.Type.DYN}, extensions=extensions, functions=_quantity_functions())


def _quantity_functions() -> list[cel.FunctionDecl]:
    """https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-quantity-library, counted in thousandths."""
    whole, text, truth = cel.Type.INT, cel.Type.STRING, cel.Type.BOOL

    def function(name: str, result: cel.Type, parameters: list[cel.Type], code: Any) -> cel.FunctionDecl:
        member = len(parameters) == 2
        return cel.FunctionDecl(name, [cel.Overload(f"octavo_{name}", result, parameters, member, code)])

    return [
        function("isQuantity", truth, [text], _is_quantity),
        function("quantity", whole, [text], _thousandths),
        function("isGreaterThan", truth, [whole, whole], int.__gt__),
        function("compareTo", whole, [whole, whole], lambda left, right: (left > right) - (left < right)),
    ]


def _is_quantity(text: str) -> bool:
    try:
        _thousandths(text)
    except QuantityError:
        return False
    return text == text.strip()  # which the operator would forgive, and the API server does not


def _thousandths(text: str) -> int:
    return parse_quantity("cpu", text)
