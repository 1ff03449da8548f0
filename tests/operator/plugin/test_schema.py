"""What the API server would refuse is told without one: field, what is wrong, what to write."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from octavo_operator.plugin.schema import complaints

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
        ({"engine": None}, "spec.engine: it has no value; write fields below it, or leave the field out"),
        ({"engine": []}, "spec.engine: [] will not do; write fields below it"),
        ({"engine": {"maxModelLen": 1.5}}, "spec.engine.maxModelLen: 1.5 will not do"),
        ({"engine": {"extraArgs": "--seed"}}, 'spec.engine.extraArgs: "--seed" will not do; write a list'),
        ({"pod": {"labels": {"team": 7}}}, "spec.pod.labels.team: 7 will not do; write text in quotes"),
        (
            {"model": {"uri": "hf://o/" + "m" * 2000}},
            "spec.model.uri: 2007 characters are too many; write at most 1024",
        ),
        ({"model": {"uri": ""}}, "spec.model.uri: it is empty"),
        ({"model": {**MODEL, "servedNames": ["a"] * 9}}, "spec.model.servedNames: 9 items are too many"),
        ({"access": {"networkPolicy": {"allowFrom": [{"ipBlok": {}}]}}}, "allowFrom[0].ipBlok: there is no such field"),
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
    found = told({"model": MODEL, "replicas": -1, "engine": {"device": "tpu"}, "typo": 1})
    assert [each.split(":")[0] for each in found] == ["spec.engine.device", "spec.replicas", "spec.typo"]


def test_metadata_is_the_api_servers_and_status_the_operators() -> None:
    metadata = {"name": "x", "labels": {"team": "a"}, "managedFields": []}
    assert told({"model": MODEL}, metadata=metadata, status={"anything": 1}) == []


def test_a_patch_may_hold_anything() -> None:
    assert told({"model": MODEL, "pod": {"patch": {"spec": {"hostNetwork": True}}}}) == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_taken(path: Path) -> None:
    deployments = [each for each in yaml.safe_load_all(path.read_text()) if each["kind"] == "LLMDeployment"]
    assert not [told for each in deployments for told in complaints(each)]


def test_the_plugin_carries_the_crd_that_the_chart_installs() -> None:
    packed = ROOT / "operator" / "octavo_operator" / "plugin" / "llmdeployments.yaml"
    assert packed.read_text() == (ROOT / "crds" / "llmdeployments.yaml").read_text()
