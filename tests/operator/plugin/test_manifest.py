"""Manifests are read as kubectl would, and mistakes name the file."""

import io
import json
from pathlib import Path

import pytest
import yaml

from octavo_operator.effective import RenderDefaults
from octavo_operator.plugin import manifest as module
from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.manifest import Manifest
from octavo_operator.plugin.manifest import read_manifests as read

ONE = """\
apiVersion: octavo.dev/v1alpha1
kind: LLMDeployment
metadata: {name: smollm}
spec: {model: {uri: "hf://org/smollm"}}
"""
DEFAULTS = RenderDefaults(image="any", operator_version="")
OTHER = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\n---\n"


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    return str(path)


def read_manifests(path: str) -> list[Manifest]:
    return read(path, "default", DEFAULTS)


def test_all_deployments_of_a_file_are_read(tmp_path: Path) -> None:
    text = ONE + OTHER + ONE.replace("name: smollm", "name: second, namespace: team")
    found = read_manifests(written(tmp_path, text))
    deployments = [each.deployment for each in found if each.deployment]
    assert [(each.namespace, each.name) for each in deployments] == [("default", "smollm"), ("team", "second")]


def test_a_list_is_opened(tmp_path: Path) -> None:
    items = "\n".join(f"    {line}" for line in ONE.splitlines()).replace("    apiVersion", "  - apiVersion", 1)
    [found] = read_manifests(written(tmp_path, f"kind: List\nitems:\n{items}\n"))
    assert found.name == "smollm"


def test_a_list_of_our_kind_is_opened(tmp_path: Path) -> None:
    text = f"apiVersion: octavo.dev/v1alpha1\nkind: LLMDeploymentList\nitems: [{json.dumps(yaml.safe_load(ONE))}]\n"
    [found] = read_manifests(written(tmp_path, text))
    assert found.name == "smollm"


def test_a_namespace_without_a_value_is_the_default(tmp_path: Path) -> None:
    [found] = read_manifests(written(tmp_path, ONE.replace("smollm}", "smollm, namespace: }")))
    assert found.deployment is not None
    assert found.deployment.namespace == "default"


def test_standard_input_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(ONE))
    [found] = read_manifests("-")
    assert found.deployment is not None
    assert found.deployment.spec.model.uri == "hf://org/smollm"


def test_mistakes_of_standard_input_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(OTHER))
    with pytest.raises(PluginError, match="standard input holds no LLMDeployment"):
        read_manifests("-")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OTHER, "holds no LLMDeployment"),
        ("a: [", "is not YAML"),
    ],
)
def test_mistakes_name_the_file_and_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(PluginError, match=words) as caught:
        read_manifests(written(tmp_path, text))
    assert "model.yaml" in str(caught.value)


NO_VERSION = ONE.replace("apiVersion: octavo.dev/v1alpha1\n", "")


@pytest.mark.parametrize(
    ("text", "refusals"),
    [
        (ONE.replace("/v1alpha1", "/v1"), ["apiVersion: octavo.dev/v1 is not known; write octavo.dev/v1alpha1"]),
        (NO_VERSION, ["apiVersion: it is missing; write octavo.dev/v1alpha1"]),
        (ONE.replace("LLMDeployment", "LLMDeploymnt"), ["kind: LLMDeploymnt is not known; write LLMDeployment"]),
        (ONE.replace("kind: LLMDeployment\n", ""), ["kind: it is missing; write LLMDeployment"]),
        (
            NO_VERSION.replace("LLMDeployment", "Llmdeployment"),
            [
                "apiVersion: it is missing; write octavo.dev/v1alpha1",
                "kind: Llmdeployment is not known; write LLMDeployment",
            ],
        ),
    ],
)
def test_a_kind_that_is_almost_ours_is_refused_and_the_rest_is_read(
    tmp_path: Path, text: str, refusals: list[str]
) -> None:
    refused, good = read_manifests(written(tmp_path, f"{text}---\n{ONE}"))
    assert (refused.name, refused.deployment, list(refused.refusals)) == ("smollm", None, refusals)
    assert good.deployment is not None


def test_an_objection_of_the_webhook_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "objection", lambda *_: "spec.pod.patch: hf_AbCdEfGh will not do; write none")
    [refused] = read_manifests(written(tmp_path, ONE))
    assert refused.refusals == ("spec.pod.patch: hf_*** will not do; write none",)


def test_a_missing_file_is_said_so() -> None:
    with pytest.raises(PluginError, match=r"nowhere\.yaml cannot be read"):
        read_manifests("nowhere.yaml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ONE.replace("{name: smollm}", "{}"), "metadata.name: it is missing; write it"),
        (ONE.replace("{name: smollm}", "{generateName: smollm-}"), "metadata.name: it is missing; write it"),
        (ONE.replace("{name: smollm}", ""), "metadata.name: it is missing; write it"),
        (ONE.replace("{name: smollm}", "{name: 5}"), "metadata.name: 5 will not do; write text in quotes"),
        (ONE.replace("uri:", "url:"), "spec.model.url: there is no such field; did you mean spec.model.uri?"),
        (ONE.replace("spec: {", "spec: {replicas: many, "), "spec.replicas"),
        (ONE.replace("hf://org/smollm", "org/smollm"), "spec.model.uri: write hf://ORG/NAME"),
        # what only rendering sees, as the operator's webhook does
        (ONE.replace("spec: {", "spec: {pod: {patch: {spec: {containers: [{image: x}]}}}, "), "spec.pod.patch"),
        (ONE.replace("spec: {", "spec: {pod: {patch: {status: {}}}, "), "spec.pod.patch.status"),
    ],
)
def test_what_would_be_refused_is_kept_with_the_reason_and_the_rest_is_read(
    tmp_path: Path, text: str, words: str
) -> None:
    refused, good = read_manifests(written(tmp_path, f"{text}---\n{ONE}"))
    assert refused.deployment is None
    assert any(words in each for each in refused.refusals), refused.refusals
    assert good.deployment is not None
