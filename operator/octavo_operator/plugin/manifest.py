"""`read_manifests`: the LLMDeployments of a YAML file (or of standard input), without a cluster.

What is no LLMDeployment is skipped; one that the API server or the operator would refuse keeps their complaints.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from octavo_operator.admission import objection
from octavo_operator.api import GROUP, KIND, VERSION, LLMDeployment, parse
from octavo_operator.effective import RenderDefaults
from octavo_operator.plugin.documents import read_documents
from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.schema import complaints, without_nulls

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
    found = [_manifest(raw, namespace, defaults) for raw in read_documents(path, place) if _is_ours(raw, place)]
    if not found:
        raise PluginError(f"{place} holds no {KIND}; give the manifest that you would apply.")
    return found


def _is_ours(raw: Mapping[str, Any], place: str) -> bool:
    """Raises PluginError for what is almost ours: kubectl would not find the kind."""
    kind, version = str(raw.get("kind", "")), str(raw.get("apiVersion", ""))
    if kind == KIND and version == _API_VERSION:
        return True
    if kind == KIND:
        wrong = f"apiVersion {version} is not known" if version else "apiVersion is missing"
        raise PluginError(f"{place}: {wrong}; write {_API_VERSION}.")
    nearly = difflib.get_close_matches(kind.lower(), [KIND.lower()], cutoff=0.8)
    if version.startswith(f"{GROUP}/") or (not version and nearly):
        raise PluginError(f"{place}: kind {kind or '(none)'} is not known; write {KIND}.")
    return False


def _manifest(raw: Mapping[str, Any], namespace: str, defaults: RenderDefaults) -> Manifest:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    refusals = [str(each) for each in complaints(raw)]
    if name is None:
        refusals.insert(0, "metadata.name: it is missing; write it: the Service has the same name")
    if refusals:
        return Manifest(str(name or "(without a name)"), None, tuple(refusals))
    pruned = without_nulls(raw)
    whole = {**pruned, "metadata": {"namespace": namespace, "uid": "", **pruned["metadata"]}}
    objected = objection(whole, defaults)
    return Manifest(str(name), None, (objected,)) if objected else Manifest(str(name), parse(whole))
