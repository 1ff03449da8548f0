"""What the API server would refuse is told without one: field, what is wrong, what to write."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.plugin.schema import complaints, crd_schema

ROOT = Path(__file__).parents[3]
MODEL = {"uri": "hf://org/model"}


def told(spec: Any, **more: Any) -> list[str]:
    raw = {"apiVersion": "octavo.dev/v1alpha1", "kind": "LLMDeployment", "metadata": {"name": "x"}, "spec": spec}
    return [str(each) for each in complaints({**raw, **more})]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"enigne": {}}, "spec.enigne: there is no such field; did you mean spec.engine?"),
        ({"engine": {"tensor_parallel_size": 2}}, "did you mean spec.engine.tensorParallelSize?"),
        ({"colour": "red"}, "spec.colour: there is no such field; spec has access, cache,"),
        ({"resources": {"limits": {}}}, "spec.resources.limits: there is no such field; spec.resources has cpu,"),
        ({"model": {}}, "spec.model.uri: it is missing; write it: Where the weights are"),
        ({"engine": {"device": "gpu"}}, 'spec.engine.device: "gpu" is not known; write auto, cuda or cpu'),
        ({"engine": {"tensorParallelSize": 3}}, "spec.engine.tensorParallelSize: 3 is not known; write 1, 2, 4 or 8"),
        ({"engine": {"maxNumSeqs": 0}}, "spec.engine.maxNumSeqs: 0 is too small; write from 1 to 4096"),
        ({"replicas": 1001}, "spec.replicas: 1001 is too large; write from 0 to 1000"),
        ({"replicas": "2"}, 'spec.replicas: "2" will not do; write a whole number without quotes or unit'),
        ({"replicas": True}, "spec.replicas: true will not do"),
        ({"suspend": "no"}, 'spec.suspend: "no" will not do; write true or false'),
        ({"engine": {"extraArgs": [None]}}, "spec.engine.extraArgs[0]: it has no value; write text in quotes"),
        ({"engine": []}, "spec.engine: a list will not do; write fields below it"),
        (
            {"engine": {"tensorParallelSize": True}},
            "spec.engine.tensorParallelSize: true will not do; write a whole number",
        ),
        ({"engine": {"maxModelLen": 1.5}}, "spec.engine.maxModelLen: 1.5 will not do"),
        ({"engine": {"extraArgs": "--seed"}}, "spec.engine.extraArgs: a single value will not do; write a list"),
        ({"pod": {"labels": {"team": 7}}}, "spec.pod.labels.team: 7 will not do; write text in quotes"),
        (
            {"model": {"uri": "hf://o/" + "m" * 2000}},
            "spec.model.uri: 2007 characters are too many; write at most 1024",
        ),
        ({"model": {"uri": ""}}, "spec.model.uri: it is empty"),
        ({"model": {**MODEL, "servedNames": ["a"] * 9}}, "spec.model.servedNames: 9 items are too many"),
        (
            {"access": {"networkPolicy": {"allowFrom": [{"podSelector": {}, "ipBlok": {}}]}}},
            "allowFrom[0].ipBlok: there is no such field",
        ),
        # the rules come once the types are right
        ({"replicas": 2, "scaling": {"mode": "Auto", "auto": {"maxReplicas": 3}}}, "leave spec.replicas out"),
        ({"engine": {"maxModelLen": "8k"}}, "write a number of tokens from 256, without quotes and unit, or auto"),
    ],
)
def test_a_bad_field_is_named_with_what_to_write(spec: dict[str, Any], words: str) -> None:
    found = told({"model": MODEL, **spec})
    assert len(found) == 1, found
    assert words in found[0]


def test_a_spec_that_is_missing_is_told() -> None:
    assert complaints({"metadata": {"name": "x"}})[0].field == "spec"


def test_every_mistake_is_told_at_once_in_the_order_of_fields() -> None:
    arguments = [7 if number in (2, 10) else "x" for number in range(12)]
    found = told({"model": MODEL, "replicas": -1, "engine": {"device": "tpu", "extraArgs": arguments}, "typo": 1})
    fields = [
        "spec.engine.device",
        "spec.engine.extraArgs[2]",
        "spec.engine.extraArgs[10]",
        "spec.replicas",
        "spec.typo",
    ]
    assert [each.split(":")[0] for each in found] == fields


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        (
            {"replicas": -1, "resources": {"memory": "4GB", "cpu": "1core"}},
            ["spec.replicas", "spec.resources.cpu", "spec.resources.memory"],
        ),
        ({"typo": 1, "engine": {"maxModelLen": "8k"}}, ["spec.engine.maxModelLen", "spec.typo"]),
        ({"engine": {"extraArgs": [7, "--port=1"]}}, ["spec.engine.extraArgs[0]"]),
        (
            {"replicas": 2, "scaling": {"mode": "Auto", "auto": {"maxReplicas": 3, "foo": 1}}},
            ["spec.replicas", "spec.scaling.auto.foo"],
        ),
        # each holds a rule that would count the misspelt or wrong field as absent
        ({"cache": {"mode": "SharedPVC", "sharedPVC": {"claimname": "x"}}}, ["spec.cache.sharedPVC.claimname"]),
        ({"scaling": {"mode": "Auto", "auto": {"maxReplicas": "3"}}}, ["spec.scaling.auto.maxReplicas"]),
        ({"model": {"uri": MODEL["uri"], "digest": 5}, "suspend": "no"}, ["spec.model.digest", "spec.suspend"]),
    ],
)
def test_the_rules_are_asked_beside_what_the_schema_refuses_and_not_around_it(
    spec: dict[str, Any], fields: list[str]
) -> None:
    assert [each.split(":")[0] for each in told({"model": MODEL, **spec})] == fields


def test_no_field_is_told_twice_and_the_whole_object_as_often_as_need_be() -> None:
    twice = {"minReplicas": 0, "maxReplicas": -1}
    found = told({"model": MODEL, "scaling": {"mode": "Auto", "auto": twice}}, metadata={"name": "A" * 60})
    assert len({each.split(":")[0] for each in found}) == len(found)
    assert len(told({"model": MODEL}, metadata={"name": "A" * 60})) == 2


def test_the_status_is_the_operators() -> None:
    assert told({"model": MODEL}, status={"anything": 1}) == []


def test_fields_without_a_value_count_as_left_out() -> None:
    empty = {"model": {**MODEL, "revision": None}, "engine": None, "replicas": None, "pod": {"labels": {"a": None}}}
    assert told(empty, metadata={"name": "x", "creationTimestamp": None, "annotations": None}) == []


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"label": {}}, "metadata.label: there is no such field; did you mean metadata.labels?"),
        ({"labels": {"x": 5}}, "metadata.labels.x: 5 will not do; write text in quotes"),
        ({"labels": ["x"]}, "metadata.labels: a list will not do"),
        ({"labels": {"team": "a b"}}, "metadata.labels.team: it will not do; write at most 63 letters"),
        ({"labels": {"a b": "c"}}, "metadata.labels: it will not do; write keys of at most 63"),
        ({"labels": {"x" * 64: "c"}}, "metadata.labels: it will not do"),
        ({"annotations": {"-a": "c"}}, "metadata.annotations: it will not do"),
        ({"namespace": 5}, "metadata.namespace: 5 will not do"),
        ({"namespace": "Team_A"}, "metadata.namespace: it will not do; write the name of a namespace"),
        ({"finalizers": "x"}, "metadata.finalizers: a single value will not do"),
    ],
)
def test_metadata_is_checked_too(metadata: dict[str, Any], words: str) -> None:
    found = told({"model": MODEL}, metadata={"name": "x", **metadata})
    assert len(found) == 1, found
    assert words in found[0]


def test_good_metadata_is_taken() -> None:
    labels = {"app.kubernetes.io/name": "a", "team": "", "x": "A.b_c-1"}
    annotations = {"example.com/note": "anything at all: {}"}
    metadata = {"name": "x", "namespace": "team-a", "labels": labels, "annotations": annotations, "managedFields": []}
    assert told({"model": MODEL}, metadata=metadata) == []


SECRET = "ghp_abcdefghijklmnopqrst"


@pytest.mark.parametrize(
    "spec",
    [
        {"model": f"https://oauth2:{SECRET}@gitlab.example/x"},
        {"model": {**MODEL, "credentials": SECRET}},
        {"model": {**MODEL, "credentials": {"secretRef": SECRET}}},
        {"model": MODEL, "access": {"apiKeys": [SECRET]}},
        {"model": MODEL, "access": {"tls": SECRET}},
        {"model": MODEL, "pod": {"env": [{"name": "A", "value": [SECRET]}]}},
        {"model": MODEL, "engine": {"dtype": f"{'a' * 40} https://me:{SECRET}@host/"}},
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(spec: dict[str, Any]) -> None:
    found = told(spec)
    assert found
    assert not [each for each in found if SECRET[:8] in each]


def test_a_patch_may_hold_anything() -> None:
    assert told({"model": MODEL, "pod": {"patch": {"spec": {"hostNetwork": True}}}}) == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_taken(path: Path) -> None:
    deployments = [each for each in yaml.safe_load_all(path.read_text()) if each["kind"] == "LLMDeployment"]
    assert not [told for each in deployments for told in complaints(each)]


def test_the_plugin_carries_the_crd_that_the_chart_installs() -> None:
    packed = ROOT / "operator" / "octavo_operator" / "plugin" / "llmdeployments.yaml"
    assert packed.read_text() == (ROOT / "crds" / "llmdeployments.yaml").read_text()


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Nearly what a field takes: its own fields and enums among values of any kind."""
    scalars = st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats(allow_nan=False) | st.text(max_size=8)
    near = [scalars, st.lists(scalars, max_size=2), st.dictionaries(st.text(max_size=5), scalars, max_size=2)]
    if "enum" in schema:
        near.append(st.sampled_from(schema["enum"]))
    if "items" in schema:
        near.append(st.lists(values(schema["items"]), max_size=2))
    if "properties" in schema:
        fields = {name: values(below) for name, below in schema["properties"].items()}
        near += [st.fixed_dictionaries({}, optional=fields)] * 3
    return st.one_of(near)


@given(values(crd_schema()["properties"]["spec"]))
def test_any_spec_is_taken_or_refused_by_fields_of_it(spec: Any) -> None:
    raw = {"apiVersion": "octavo.dev/v1alpha1", "kind": "LLMDeployment", "metadata": {"name": "x"}, "spec": spec}
    for each in complaints(raw):
        assert each.field.startswith("spec")
        assert each.message
