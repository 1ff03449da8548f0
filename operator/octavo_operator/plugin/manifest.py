"""`read_manifests`: the LLMDeployments of a YAML file (or of standard input), without a cluster."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from octavo_operator.api import KIND, LLMDeployment, SpecError, parse
from octavo_operator.plugin.errors import PluginError


def read_manifests(path: str, namespace: str) -> list[LLMDeployment]:
    """At least one. Raises PluginError naming the file and what is wrong."""
    found = [_parsed(raw, namespace, path) for raw in _documents(path) if raw.get("kind") == KIND]
    if not found:
        raise PluginError(f"{path} holds no {KIND}; give the manifest that you would apply.")
    return found


def _documents(path: str) -> Iterator[dict[str, Any]]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        documents = list(yaml.safe_load_all(text))
    except OSError as error:
        raise PluginError(f"{path} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PluginError(f"{path} is not YAML: {' '.join(str(error).split())}.") from error
    for document in documents:
        if isinstance(document, dict):
            yield from _items(document)


def _items(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A List, as `kubectl get -o yaml` writes it, holds documents of its own."""
    if document.get("kind") != "List":
        yield document
        return
    yield from (item for item in document.get("items") or () if isinstance(item, dict))


def _parsed(raw: dict[str, Any], namespace: str, path: str) -> LLMDeployment:
    metadata = raw.get("metadata") or {}
    if not metadata.get("name"):
        raise PluginError(f"{path}: an {KIND} has no metadata.name; write one.")
    try:
        return parse({**raw, "metadata": {"namespace": namespace, "uid": "", **metadata}})
    except SpecError as error:
        raise PluginError(f"{path}: {metadata['name']}: {error}.") from error
