"""Examples, the chart's notes and the guides show objects that the kind's schema has, and every field of it is shown."""

import importlib.util
import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from octavo_operator import api
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.uri import parse_uri

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
NOTES = ROOT / "charts" / "octavo" / "templates" / "NOTES.txt"
CASES = ROOT / "e2e" / "validation_cases.yaml"
ELSEWHERE = {
    ".cache.sharedPVC.claimName",  # excludes size; e2e/test_validation.py has it
}

Manifest = dict[str, Any]
Problems = Callable[[Manifest], list[str]]


def deployments(text: str) -> list[Manifest]:
    documents = [document for document in yaml.safe_load_all(text) if document]
    return [document for document in documents if document["kind"] == "LLMDeployment"]


def shown(document: str) -> list[Manifest]:
    """The LLMDeployments in a text for people: indented blocks that begin with apiVersion."""
    blocks = re.findall(r"^( +)apiVersion: octavo\.dev/v1alpha1\n((?:\1.*\n|\n)+)", document, re.MULTILINE)
    texts = [
        "apiVersion: octavo.dev/v1alpha1\n" + re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        for indent, body in blocks
    ]
    return [found for text in texts for found in deployments(re.split(r"^END$|^---$", text, flags=re.MULTILINE)[0])]


def leaves(value: Manifest, path: str = "") -> Iterator[str]:
    for name, below in value.items():
        place = f"{path}.{name}"
        yield place
        if isinstance(below, dict):
            yield from leaves(below, place)


def fields(schema: Manifest, path: str = "") -> Iterator[str]:
    for name, below in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from fields(below, f"{path}.{name}")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_fits_the_schema_and_is_read_by_the_operator(example: Path, problems: Problems) -> None:
    found = deployments(example.read_text())
    assert found
    for manifest in found:
        assert not problems(manifest)
        manifest["metadata"] |= {"namespace": "default", "uid": "u", "generation": 1}
        assert api.parse(manifest).spec.model.uri == manifest["spec"]["model"]["uri"]


def test_examples_are_numbered_from_minimal_to_everything() -> None:
    names = [path.name for path in EXAMPLES]
    assert [name[:2] for name in names] == [f"{number:02}" for number in range(1, len(names) + 1)]
    assert (names[0], names[-1]) == ("01-minimal.yaml", f"{len(names):02}-everything.yaml")


def test_every_example_is_applied_in_a_user_story() -> None:
    stories = (ROOT / "e2e" / "test_examples.py").read_text()
    assert [path.name for path in EXAMPLES if f'"{path.name}"' not in stories] == []


def test_every_field_is_in_some_example(schema: Manifest) -> None:
    used = {path for example in EXAMPLES for each in deployments(example.read_text()) for path in leaves(each["spec"])}
    assert set(fields(schema["properties"]["spec"])) - used == ELSEWHERE


def test_the_smallest_manifest_is_the_same_everywhere() -> None:
    (minimal,) = deployments(EXAMPLES[0].read_text())
    for document in (NOTES, ROOT / "docs" / "guides" / "first-model.md"):
        assert shown(document.read_text())[0] == minimal, document


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_a_guide_shows_objects_that_fit_the_schema(guide: Path, problems: Problems) -> None:
    for manifest in shown(guide.read_text()):
        assert not problems(manifest)


def test_no_rule_of_the_kind_is_without_a_bad_spec(schema: Manifest) -> None:
    def messages(below: Manifest) -> Iterator[str]:
        yield from (rule["message"] for rule in below.get("x-kubernetes-validations", ()))
        for child in [*below.get("properties", {}).values(), *([below["items"]] if "items" in below else [])]:
            yield from messages(child)

    tried = [case["says"] for case in yaml.safe_load(CASES.read_text())]
    computed = "this flag has a field of its own"  # its message names the flag and the field
    untried = [
        message
        for message in messages(schema)
        if not message.startswith(computed) and not any(says in message for says in tried)
    ]
    assert not untried
    assert any("write engine.tensorParallelSize" in says for says in tried)


def test_bad_specs_are_bad_by_a_rule_alone(problems: Problems) -> None:
    """A spec that the schema refuses as well would not show what the rule says."""
    for case in yaml.safe_load(CASES.read_text()):
        manifest = {"apiVersion": "octavo.dev/v1alpha1", "kind": "LLMDeployment", "metadata": {}, "spec": case["spec"]}
        assert not problems(manifest), case


def test_uris_that_the_kind_refuses_are_refused_by_the_operator_too() -> None:
    uris = [
        case["spec"]["model"]["uri"] for case in yaml.safe_load(CASES.read_text()) if case["field"] == "spec.model.uri"
    ]
    assert len(uris) > 10
    for uri in uris:
        with pytest.raises(ModelProblem, match=r"spec\.model\.uri"):
            parse_uri(uri)


def test_the_chat_client_streams_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(json.dumps({"data": [{"id": "smollm"}]}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = f"{body['model']}|{self.headers['Authorization']}|"
            pieces = [{"choices": [{"delta": {"content": piece}}]} for piece in (asked, "Par", "is")]
            events = [f"data: {json.dumps(piece)}\n\n" for piece in pieces]
            self._send("".join([*events, "data: [DONE]\n\n"]))

        def _send(self, text: str) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    spec = importlib.util.spec_from_file_location("chat_client", ROOT / "examples" / "chat_client.py")
    assert spec is not None
    assert spec.loader is not None
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    with HTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr("sys.argv", ["chat_client.py", f"http://127.0.0.1:{server.server_port}", "Capital?"])
        monkeypatch.setattr("sys.stdout", out := io.StringIO())
        monkeypatch.setenv("OCTAVO_API_KEY", "k")
        assert client.main() == 0
        server.shutdown()
    assert out.getvalue() == "smollm|Bearer k|Paris\n"
