"""Patches as kubectl applies them."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.desired.strategic_merge import MERGE_KEYS, MergeError, merge

MAIN = {
    "name": "main",
    "image": "a:1",
    "args": ["x", "y"],
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
}
BASE = {"spec": {"containers": [MAIN], "nodeSelector": {"disk": "ssd"}, "volumes": [{"name": "cache", "emptyDir": {}}]}}


def spec(patch: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = merge(BASE, {"spec": patch})["spec"]
    return merged


def test_maps_merge_and_null_removes() -> None:
    assert spec({"nodeSelector": {"zone": "a"}})["nodeSelector"] == {"disk": "ssd", "zone": "a"}
    assert spec({"nodeSelector": {"disk": None}})["nodeSelector"] == {}
    assert "nodeSelector" not in spec({"nodeSelector": None})
    assert spec({"nodeSelector": {"$patch": "replace", "zone": "a"}})["nodeSelector"] == {"zone": "a"}


def test_a_container_is_found_by_its_name_and_a_new_one_comes_behind() -> None:
    containers = spec({"containers": [{"name": "side", "image": "b:1"}, {"name": "main", "image": "a:2"}]})[
        "containers"
    ]
    assert containers == [MAIN | {"image": "a:2"}, {"name": "side", "image": "b:1"}]


def test_a_container_can_be_removed_or_replaced_whole() -> None:
    assert spec({"containers": [{"name": "main", "$patch": "delete"}]})["containers"] == []
    replaced = spec({"containers": [{"name": "main", "$patch": "replace", "image": "b"}]})["containers"]
    assert replaced == [{"name": "main", "image": "b"}]
    assert spec({"containers": [{"$patch": "replace"}, {"name": "only"}]})["containers"] == [{"name": "only"}]


def test_lists_without_names_are_replaced() -> None:
    assert spec({"containers": [{"name": "main", "args": ["z"]}]})["containers"][0]["args"] == ["z"]
    assert spec({"tolerations": [{"key": "a"}]})["tolerations"] == [{"key": "a"}]


def test_a_variable_is_replaced_with_its_origin() -> None:
    source = {"secretKeyRef": {"name": "s", "key": "k"}}
    env = spec({"containers": [{"name": "main", "env": [{"name": "A", "valueFrom": source}]}]})["containers"][0]["env"]
    assert env == [{"name": "A", "valueFrom": source}, {"name": "B", "value": "2"}]


def test_a_volume_is_replaced_when_its_source_is_another_and_merged_when_it_is_the_same() -> None:
    claim = {"name": "cache", "persistentVolumeClaim": {"claimName": "c"}}
    assert spec({"volumes": [claim]})["volumes"] == [claim]
    limited = spec({"volumes": [{"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}}]})["volumes"]
    assert limited == [{"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}}]


def test_a_label_with_the_name_of_a_list_is_just_a_label() -> None:
    merged = merge({"metadata": {"labels": {"env": "test"}}}, {"metadata": {"labels": {"env": "prod"}}})
    assert merged["metadata"]["labels"] == {"env": "prod"}


@pytest.mark.parametrize(
    ("patch", "path", "message"),
    [
        ({"spec": {"containers": [{"image": "a"}]}}, ".spec.containers[0]", "needs name"),
        ({"spec": {"containers": ["main"]}}, ".spec.containers[0]", "needs name"),
        ({"spec": {"$patch": "delete"}}, ".spec", "null to remove"),
        ({"spec": {"$retainKeys": []}}, ".spec.$retainKeys", "only the directive"),
        ({"spec": {"containers": [{"name": "main", "ports": [{"name": "http"}]}]}}, "[0].ports[0]", "containerPort"),
    ],
)
def test_what_cannot_be_merged_is_named_with_its_place(patch: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(MergeError, match=message) as caught:
        merge(BASE, patch)
    assert caught.value.path.endswith(path)


scalars = st.integers() | st.booleans() | st.text(max_size=3)
named = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"image": scalars, "args": st.lists(scalars)}),
    max_size=3,
    unique_by=lambda item: item["name"],
)
patches = st.fixed_dictionaries(
    {},
    optional={
        "containers": named,
        "nodeSelector": st.dictionaries(st.sampled_from("xyz"), st.none() | scalars, max_size=3),
        "hostname": st.none() | scalars,
    },
)


@given(patches, patches)
def test_merging_changes_neither_side_and_twice_is_once(base: dict[str, Any], patch: dict[str, Any]) -> None:
    base = merge({}, base)
    before = copy.deepcopy((base, patch))
    once = merge(base, patch)
    assert (base, patch) == before
    assert merge(once, patch) == once


@given(patches)
def test_an_empty_patch_changes_nothing(base: dict[str, Any]) -> None:
    base = merge({}, base)
    assert merge(base, {}) == base


@given(patches, patches)
def test_no_list_holds_two_things_of_one_name(base: dict[str, Any], patch: dict[str, Any]) -> None:
    merged = merge(merge({}, base), patch)
    for key, name in MERGE_KEYS.items():
        found = [item[name] for item in merged.get(key, ())]
        assert len(found) == len(set(found))
