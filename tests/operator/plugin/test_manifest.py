"""Manifests are read as kubectl would, and mistakes name the file."""

import io
from pathlib import Path

import pytest

from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.manifest import read_manifests

ONE = """\
apiVersion: octavo.dev/v1alpha1
kind: LLMDeployment
metadata: {name: smollm}
spec: {model: {uri: "hf://org/smollm"}}
"""
OTHER = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n---\n"


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    return str(path)


def test_all_deployments_of_a_file_are_read(tmp_path: Path) -> None:
    text = ONE + OTHER + ONE.replace("name: smollm", "name: second, namespace: team")
    found = read_manifests(written(tmp_path, text), "default")
    assert [(each.namespace, each.name) for each in found] == [("default", "smollm"), ("team", "second")]


def test_a_list_is_opened(tmp_path: Path) -> None:
    items = "\n".join(f"    {line}" for line in ONE.splitlines()).replace("    apiVersion", "  - apiVersion", 1)
    [found] = read_manifests(written(tmp_path, f"kind: List\nitems:\n{items}\n"), "default")
    assert found.name == "smollm"


def test_standard_input_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(ONE))
    assert read_manifests("-", "default")[0].spec.model.uri == "hf://org/smollm"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OTHER, "holds no LLMDeployment"),
        ("a: [", "is not YAML"),
        (ONE.replace("{name: smollm}", "{}"), "has no metadata.name"),
        (ONE.replace("uri:", "url:"), "missing required field `uri`"),
        (ONE.replace("spec: {", "spec: {replicas: many, "), "spec.replicas"),
    ],
)
def test_mistakes_name_the_file_and_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(PluginError, match=words) as caught:
        read_manifests(written(tmp_path, text), "default")
    assert "model.yaml" in str(caught.value)


def test_a_missing_file_is_said_so() -> None:
    with pytest.raises(PluginError, match=r"nowhere\.yaml cannot be read"):
        read_manifests("nowhere.yaml", "default")
