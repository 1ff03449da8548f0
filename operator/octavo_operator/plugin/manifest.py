"""`read_manifests`: the LLMDeployments of a YAML file (or of standard input), without a cluster.

What is no LLMDeployment is skipped; one that the API server or the operator would refuse keeps their complaints.
"""

import difflib
import sys
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from octavo_operator.admission import objection
from octavo_operator.api import GROUP, KIND, VERSION, LLMDeployment, parse
from octavo_operator.effective import RenderDefaults
from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.schema import complaints

_API_VERSION = f"{GROUP}/{VERSION}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document. `deployment` is None where there are refusals."""

    name: str
    deployment: LLMDeployment | None
    refusals: tuple[str, ...] = ()


def read_manifests(path: str, namespace: str, defaults: RenderDefaults) -> list[Manifest]:
    """At least one. `path` - is standard input. Raises PluginError naming the file and what is wrong."""
    place = "standard input" if path == "-" else path
    found = [_manifest(raw, namespace, place, defaults) for raw in _documents(path, place) if _is_ours(raw, place)]
    if not found:
        raise PluginError(f"{place} holds no {KIND}; give the manifest that you would apply.")
    return found


def _documents(path: str, place: str) -> Iterator[Mapping[str, Any]]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        documents = list(yaml.load_all(text, _Loader))
    except OSError as error:
        raise PluginError(f"{place} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PluginError(f"{place} is not YAML: {' '.join(str(error).split())}.") from error
    for document in documents:
        if isinstance(document, dict):
            yield from _items(document)


def _items(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A List, as `kubectl get -o yaml` writes it, holds documents of its own."""
    if document.get("kind") != "List":
        yield document
        return
    yield from (item for item in document.get("items") or () if isinstance(item, dict))


def _is_ours(raw: Mapping[str, Any], place: str) -> bool:
    """Raises PluginError for what is almost ours: kubectl would not find the kind."""
    kind, version = str(raw.get("kind", "")), str(raw.get("apiVersion", ""))
    if kind == KIND and version == _API_VERSION:
        return True
    if kind == KIND:
        wrong = f"apiVersion {version} is not known" if version else "apiVersion is missing"
        raise PluginError(f"{place}: {wrong}; write {_API_VERSION}.")
    if version.startswith(f"{GROUP}/") or difflib.get_close_matches(kind.lower(), [KIND.lower()], cutoff=0.8):
        raise PluginError(f"{place}: kind {kind or '(none)'} is not known; write {KIND}.")
    return False


def _manifest(raw: Mapping[str, Any], namespace: str, place: str, defaults: RenderDefaults) -> Manifest:
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise PluginError(f"{place}: an {KIND} has no metadata.name; write one.")
    name = metadata["name"]
    refusals = tuple(map(str, complaints(raw)))
    whole = {**raw, "metadata": {"namespace": namespace, "uid": "", **metadata}}
    if not refusals:
        objected = objection(whole, defaults)
        refusals = (objected,) if objected else ()
    return Manifest(name, None if refusals else parse(whole), refusals)


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in a map, as kubectl does; the first would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Raises yaml.YAMLError, which names line and column."""
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key.value} stands here twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)
