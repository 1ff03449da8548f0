"""The CRD's rules hold offline as they do in the API server."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from octavo_operator.plugin.cel_rules import broken_rules
from octavo_operator.plugin.schema import crd_schema

ROOT = Path(__file__).parents[3]
CASES: list[dict[str, Any]] = yaml.safe_load((ROOT / "e2e" / "validation_cases.yaml").read_text())


def broken(value: Any, **schema: Any) -> list[tuple[str, str]]:
    return [(each.field, each.message) for each in broken_rules(value, schema)]


def rule(expression: str, **more: str) -> list[dict[str, str]]:
    return [{"rule": expression, "message": "no", **more}]


@pytest.mark.parametrize("case", CASES, ids=[f"{index}-{case['field']}" for index, case in enumerate(CASES)])
def test_each_spec_that_the_api_server_refuses_is_refused_in_its_words(case: dict[str, Any]) -> None:
    """The same cases are sent to a real API server by e2e/test_validation.py."""
    raw = {"metadata": {"name": case.get("name", "bad")}, "spec": case["spec"]}
    told = list(broken_rules(raw, crd_schema()))
    assert [each for each in told if each.field == case["field"] and case["says"] in each.message], told


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.stem)
def test_no_example_breaks_a_rule(path: Path) -> None:
    deployments = [each for each in yaml.safe_load_all(path.read_text()) if each["kind"] == "LLMDeployment"]
    assert not [told for each in deployments for told in broken_rules(each, crd_schema())]


def test_a_rule_is_asked_of_each_item_and_each_value() -> None:
    item = {"x-kubernetes-validations": rule("self > 1")}
    assert broken([2, 1], items=item) == [("[1]", "no")]
    assert broken({"a": 2, "b": 0}, additionalProperties=item) == [("b", "no")]


def test_a_field_that_the_rule_names_is_the_one_that_is_told() -> None:
    assert broken({"a": 1}, **{"x-kubernetes-validations": rule("has(self.b)", fieldPath=".b")}) == [("b", "no")]


def test_values_that_the_schema_refuses_are_not_asked_and_those_beside_them_are() -> None:
    item = {"x-kubernetes-validations": rule("self > 1")}
    schema = {"properties": {"a": item, "b": item}, "x-kubernetes-validations": rule("self.a > 1")}
    told = list(broken_rules({"a": "text", "b": 0}, schema, unsound={(), ("a",)}))
    assert [each.field for each in told] == ["b"]


def test_a_rule_that_cannot_be_evaluated_counts_as_broken() -> None:
    assert broken({}, **{"x-kubernetes-validations": rule("self.absent > 1")}) == [("", "no")]


def test_a_message_can_be_made_from_the_value() -> None:
    made = {"x-kubernetes-validations": rule("self != 'x'", messageExpression="self + ' is not allowed'")}
    assert broken("x", **made) == [("", "x is not allowed")]


def test_a_message_that_cannot_be_made_gives_way_to_the_plain_one() -> None:
    made = {"x-kubernetes-validations": rule("self != 'x'", messageExpression="{'y': 'never'}[self]")}
    assert broken("x", **made) == [("", "no")]


@pytest.mark.parametrize(
    ("text", "holds"),
    [("2", True), ("1001m", True), ("1Gi", True), ("1", False), ("500m", False), ("-2", False), ("two", False)],
)
def test_quantities_compare_as_amounts(text: str, holds: bool) -> None:
    expression = "isQuantity(self) && quantity(self).isGreaterThan(quantity('1'))"
    assert (not broken(text, **{"x-kubernetes-validations": rule(expression)})) is holds
