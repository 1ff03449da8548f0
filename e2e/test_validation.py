"""What a real API server says to each bad spec: every rule in CEL, every bound and enum of the schema, message included.

Nothing is created: each object is sent with `--dry-run=server`. The bad specs of the rules are in `validation_cases.yaml`;
those of bounds and enums are made from the schema itself, so that a new field is tried without a new line here.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.kubernetes import Answer, Kubectl

ROOT = Path(__file__).parents[1]
CRD = ROOT / "crds" / "llmdeployments.yaml"
CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "validation_cases.yaml").read_text())
EVERYTHING = ROOT / "examples" / "08-everything.yaml"

SECRETS = ("hf_0123456789ABCDEFabcdef", "me:secret", "user:password", "token=abc")  # of the cases

Manifest = dict[str, Any]
Judge = Callable[..., Answer]


@pytest.fixture(scope="module")
def judge(kubectl: Kubectl) -> Judge:
    """What the API server says to these objects, all in one call."""

    def run(*manifests: Manifest) -> Answer:
        given = "\n".join(map(json.dumps, manifests))  # a List would be checked by kubectl itself
        return kubectl(
            "create", "--namespace=default", "--dry-run=server", "--output=name", "--filename=-", given=given
        )

    return run


def deployment(name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": "octavo.dev/v1alpha1", "kind": "LLMDeployment", "metadata": {"name": name}, "spec": spec}


def good(**spec: Any) -> Manifest:
    return deployment("good", {"model": {"uri": "hf://org/model"}, **spec})


def schema_of_spec() -> Manifest:
    crd = yaml.safe_load(CRD.read_text())
    found: Manifest = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def bad_values(schema: Manifest) -> Iterator[object]:
    """Just outside each bound of a scalar or list."""
    if "enum" in schema:
        yield "Nonsense" if schema["type"] == "string" else 3
    if "minimum" in schema:
        yield schema["minimum"] - 1
    if "maximum" in schema:
        yield schema["maximum"] + 1
    if "maxLength" in schema:
        yield "a" * (schema["maxLength"] + 1)
    if "maxItems" in schema:
        yield [_some(schema["items"], index) for index in range(schema["maxItems"] + 1)]
    if "maxProperties" in schema:
        yield {f"label-{index}": "x" for index in range(schema["maxProperties"] + 1)}
    if schema.get("type") in ("integer", "number", "boolean"):
        yield "text"
    if schema.get("type") == "string":
        yield 7


def bad_specs(schema: Manifest, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str, Manifest]]:
    """(field, a spec in which only that field is bad)."""
    for name, below in schema.get("properties", {}).items():
        place = (*path, name)
        for value in bad_values(below):
            yield _text(place), _spec(place, value)
        yield from bad_specs(below, place)
        if "items" in below:
            for value in bad_values(below["items"]):
                yield _text((*place, 0)), _spec(place, [value])
            yield from bad_specs(below["items"], (*place, 0))


def _spec(path: tuple[str | int, ...], value: object) -> Manifest:
    """A spec with this value at the path, and what its neighbours need. The first key is a field of the spec."""
    for step in reversed(path):
        value = [value] if isinstance(step, int) else {step: value}
    spec: Manifest = dict(value) if isinstance(value, dict) else {}
    model = {"uri": "hf://org/model"} | (spec["model"] if isinstance(spec.get("model"), dict) else {})
    return {**spec, "model": model}


def _text(path: tuple[str | int, ...]) -> str:
    return "spec" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _some(schema: Manifest, index: int) -> object:
    if schema["type"] == "object":
        return dict.fromkeys(schema.get("required", ()), f"x{index}")
    return f"x{index}"


def refusals(said: str) -> dict[str, str]:
    """Name of each refused object -> why."""
    pieces = re.split(r'LLMDeployment(?:\.octavo\.dev)? "([^"]+)" is invalid:', said)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


@pytest.mark.parametrize("case", CASES, ids=[f"{index}-{case['field']}" for index, case in enumerate(CASES)])
def test_a_bad_spec_is_refused_with_what_to_write(judge: Judge, case: dict[str, Any]) -> None:
    done = judge(deployment(case.get("name", "bad"), case["spec"]))
    assert done.returncode != 0
    told = [line for line in done.stderr.splitlines() if case["says"] in line]
    assert told, done.stderr
    assert any(f"{case['field']}: " in line for line in told), done.stderr
    assert not [secret for secret in SECRETS if secret in done.stderr], "the refusal ends in somebody's log"


def test_values_outside_their_bounds_are_refused_by_the_name_of_their_field(judge: Judge) -> None:
    tried = {f"bad-{index}": each for index, each in enumerate(bad_specs(schema_of_spec()))}
    assert len(tried) > 100
    done = judge(*(deployment(name, spec) for name, (_, spec) in tried.items()))
    assert done.stdout == ""
    told = refusals(done.stderr)
    silent = {name: field for name, (field, _) in tried.items() if f"{field}: " not in told.get(name, "")}
    assert not silent, done.stderr


def test_an_unknown_field_is_refused_by_name(judge: Judge) -> None:
    done = judge(good(engine={"tensorParalelSize": 2}))
    assert done.returncode != 0
    assert 'unknown field "spec.engine.tensorParalelSize"' in done.stderr


def test_four_lines_are_enough(judge: Judge) -> None:
    done = judge(deployment("smollm", {"model": {"uri": "hf://HuggingFaceTB/SmolLM2-135M-Instruct"}}))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["a", "llama-3-8b", "a" * 50])
def test_good_names_pass(judge: Judge, name: str) -> None:
    done = judge(deployment(name, {"model": {"uri": "hf://org/model"}}))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "uri",
    [
        "hf://org/model.v1",
        "hf://org/model/deep/er/model-q4.gguf",
        "pvc://claim",
        "pvc://my.claim/",
        "pvc://claim/a/b/",
        "file:///models/a b",
        "https://host.example:8443/path/model.gguf",
    ],
)
def test_good_uris_pass(judge: Judge, uri: str) -> None:
    done = judge(good(model={"uri": uri}))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "spec",
    [
        {"pod": {"env": [{"name": "TOKENIZERS_PARALLELISM", "value": "false"}]}},
        {"pod": {"env": [{"name": "MAX_TOKENS", "value": "100"}, {"name": "HF_TOKEN", "value": ""}]}},
        {"pod": {"env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}]}},
        {"pod": {"labels": {"team": "search", "app.kubernetes.io/part-of": "chat"}}},
        {"engine": {"maxModelLen": "auto"}, "resources": {"cpu": "500m", "memory": "64Gi", "shm": 8589934592}},
        {"engine": {"tensorParallelSize": 4, "pipelineParallelSize": 2, "extraArgs": ["--seed", "7"]}},
        {"rollout": {"maxSurge": 0, "maxUnavailable": 1}},
        {"rollout": {"strategy": "InPlace", "maxSurge": 0}},
        {"scaling": {"mode": "External"}, "replicas": 3},
        {"cache": {"mode": "SharedPVC", "sharedPVC": {"claimName": "models", "accessMode": "ReadOnlyMany"}}},
        {"liveness": {"engineStallSeconds": 0}},
        {"replicas": 0, "suspend": True},
    ],
)
def test_what_only_looks_like_a_mistake_passes(judge: Judge, spec: Manifest) -> None:
    done = judge(good(**spec))
    assert done.returncode == 0, done.stderr


def test_the_example_with_everything_passes(kubectl: Kubectl) -> None:
    done = kubectl("create", "--namespace=default", "--dry-run=server", "--filename", str(EVERYTHING))
    assert done.returncode == 0, done.stderr


def test_kubectl_explain_tells_each_field_of_the_spec(kubectl: Kubectl) -> None:
    done = kubectl("explain", "llmdeployments.spec", "--recursive")
    assert done.returncode == 0, done.stderr
    for name in schema_of_spec()["properties"]:
        assert re.search(rf"^\s+{name}\t", done.stdout, re.MULTILINE), name
    assert "<no description>" not in kubectl("explain", "llmdeployments.spec.rollout").stdout
