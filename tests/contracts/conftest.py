"""The kind and the chart as the tests of this folder see them."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CRD = ROOT / "crds" / "llmdeployments.yaml"
CHART = ROOT / "charts" / "octavo"

Schema = dict[str, Any]
Problems = Callable[[dict[str, Any]], list[str]]
Render = Callable[..., list[dict[str, Any]]]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


@pytest.fixture(scope="session")
def crd() -> dict[str, Any]:
    """The file in `crds/`, read."""
    read: dict[str, Any] = yaml.safe_load(CRD.read_text())
    return read


@pytest.fixture(scope="session")
def schema(crd: dict[str, Any]) -> Schema:
    """Of the only version."""
    (version,) = crd["spec"]["versions"]
    found: Schema = version["schema"]["openAPIV3Schema"]
    return found


@pytest.fixture(scope="session")
def problems(schema: Schema) -> Problems:
    """Structural validation as the API server does it, without the rules in CEL: one sentence per problem."""
    open_metadata = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    whole = schema | {"properties": schema["properties"] | {"metadata": open_metadata}}
    return lambda manifest: list(_problems(whole, manifest, ""))


@pytest.fixture(scope="session")
def helm() -> Path:
    """The program, from the PATH or built by `make cluster` (and `.ci/run`) into the cache."""
    cache = Path(os.environ.get("OCTAVO_CACHE") or Path.home() / ".cache" / "octavo")
    built = cache / "cluster" / "helm" / "helm"
    found = shutil.which("helm") or (built if built.exists() else None)
    if found is None:
        pytest.fail("helm is not here: `make cluster` builds it, or put helm 3.17 or newer on the PATH")
    return Path(found)


@pytest.fixture(scope="session")
def render(helm: Path) -> Render:
    """`helm template` of the chart with these `--set` texts: its objects. Raises CalledProcessError."""

    def run(*settings: str, release: str = "octavo", namespace: str = "octavo-system") -> list[dict[str, Any]]:
        command = [str(helm), "template", release, str(CHART), "--namespace", namespace]
        for setting in settings:
            command += ["--set-json", setting]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [document for document in yaml.safe_load_all(done.stdout) if document]

    return run


def _problems(schema: Schema, value: object, path: str) -> Iterator[str]:
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield f"{path}: must be a number or a text"
        return
    kind = schema["type"]
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        yield f"{path}: must be of type {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: must be one of {schema['enum']}"
    if isinstance(value, dict):
        yield from _of_object(schema, value, path)
    elif isinstance(value, list):
        yield from _of_array(schema, value, path)
    elif isinstance(value, str):
        yield from _of_text(schema, value, path)
    elif isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path}: is out of bounds"


def _of_object(schema: Schema, value: dict[str, Any], path: str) -> Iterator[str]:
    yield from (f"{path}.{name}: is needed" for name in schema.get("required", ()) if name not in value)
    if len(value) > schema.get("maxProperties", len(value)):
        yield f"{path}: has too many entries"
    known = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for name, below in value.items():
        place = f"{path}.{name}".lstrip(".")
        if name in known:
            yield from _problems(known[name], below, place)
        elif isinstance(others, dict):
            yield from _problems(others, below, place)
        elif not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{place}: there is no such field"


def _of_array(schema: Schema, value: list[Any], path: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{path}: has too many or too few items"
    for index, item in enumerate(value):
        yield from _problems(schema["items"], item, f"{path}[{index}]")


def _of_text(schema: Schema, value: str, path: str) -> Iterator[str]:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield f"{path}: is too long or too short"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: must match {schema['pattern']}"
