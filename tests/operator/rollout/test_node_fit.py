from typing import Any

import pytest

from octavo_operator.observed import NodeView
from octavo_operator.rollout.node_fit import matches, tolerates


def node(labels: dict[str, str] | None = None, *taints: dict[str, str]) -> NodeView:
    return NodeView("n1", True, labels or {}, taints, {}, {})


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def expression(operator: str, *values: str, key: str = "gpu") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_no_wish_matches_every_node() -> None:
    assert matches(node(), {})


def test_the_node_selector_must_hold() -> None:
    assert matches(node({"zone": "a"}), {"nodeSelector": {"zone": "a"}})
    assert not matches(node({"zone": "b"}), {"nodeSelector": {"zone": "a"}})
    assert not matches(node(), {"nodeSelector": {"zone": "a"}})


@pytest.mark.parametrize(
    ("operator", "values", "held_by"),
    [
        ("In", ("h100", "h200"), {"h100"}),
        ("NotIn", ("h100",), {"l4", None}),
        ("Exists", (), {"h100", "l4"}),
        ("DoesNotExist", (), {None}),
    ],
)
def test_the_operators_of_affinity(operator: str, values: tuple[str, ...], held_by: set[str | None]) -> None:
    labels = {"h100", "l4", None}
    found = {
        value
        for value in labels
        if matches(node({"gpu": value} if value else {}), affinity(expression(operator, *values)))
    }
    assert found == held_by


def test_numbers_are_compared_and_words_are_not() -> None:
    assert matches(node({"gpu": "80"}), affinity(expression("Gt", "40")))
    assert not matches(node({"gpu": "24"}), affinity(expression("Gt", "40")))
    assert matches(node({"gpu": "24"}), affinity(expression("Lt", "40")))
    assert not matches(node({"gpu": "many"}), affinity(expression("Gt", "40")))


def test_one_term_suffices_and_all_of_a_term_must_hold() -> None:
    either = affinity(expression("In", "h100"), expression("In", "l4"))
    assert matches(node({"gpu": "l4"}), either)
    both = {
        "matchExpressions": [
            *expression("In", "l4")["matchExpressions"],
            *expression("Exists", key="zone")["matchExpressions"],
        ]
    }
    assert not matches(node({"gpu": "l4"}), affinity(both))


def test_a_node_may_be_named() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    assert matches(node(), affinity(named))
    assert not matches(node(), affinity({}))


GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "held"),
    [
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}, True),
        ({"key": "nvidia.com/gpu", "value": "other"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], held: bool) -> None:
    assert tolerates(node(None, GPU_TAINT), {"tolerations": [toleration]}) is held


def test_a_preference_against_a_node_keeps_nobody_out() -> None:
    assert tolerates(node(None, {"key": "k", "effect": "PreferNoSchedule"}), {})
    assert not tolerates(node(None, GPU_TAINT), {})
