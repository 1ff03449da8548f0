"""`read_manifests`: the LLMDeployments of a YAML file (or of standard input), without a cluster.

What is no LLMDeployment is skipped; one that the API server or the operator would refuse keeps their complaints.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from octavo_operator.admission import objection
from octavo_operator.api import GROUP, KIND, VERSION, LLMDeployment, parse
from octavo_operator.effective import RenderDefaults
from octavo_operator.plugin.documents import read_documents
from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.schema import complaints, without_nulls
from octavo_operator.status.redaction import redact

_API_VERSION = f"{GROUP}/{VERSION}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document. `deployment` is None where there are refusals, which hold no secret."""

    name: str
    deployment: LLMDeployment | None
    refusals: tuple[str, ...] = ()


def read_manifests(path: str, namespace: str, defaults: RenderDefaults) -> list[Manifest]:
    """At least one. `path` - is standard input. Raises PluginError naming the file and what is wrong."""
    place = "standard input" if path == "-" else path
    found = [_manifest(raw, namespace, defaults) for raw in read_documents(path, place) if _is_ours(raw)]
    if not found:
        raise PluginError(f"{place} holds no {KIND}; give the manifest that you would apply.")
    return found


def _is_ours(raw: Mapping[str, Any]) -> bool:
    """Or is almost, so that it was meant to be."""
    kind, version = _type_of(raw)
    nearly = difflib.get_close_matches(kind.lower(), [KIND.lower()], cutoff=0.8)
    return kind == KIND or version.startswith(f"{GROUP}/") or (not version and bool(nearly))


def _type_of(raw: Mapping[str, Any]) -> tuple[str, str]:
    return str(raw.get("kind") or ""), str(raw.get("apiVersion") or "")


def _unknown_type(raw: Mapping[str, Any]) -> Iterator[str]:
    """What kubectl says of a kind that it does not find."""
    kind, version = _type_of(raw)
    for field, written, right in (("apiVersion", version, _API_VERSION), ("kind", kind, KIND)):
        if written != right:
            wrong = f"{redact(written)} is not known" if written else "it is missing"
            yield f"{field}: {wrong}; write {right}"


def _manifest(raw: Mapping[str, Any], namespace: str, defaults: RenderDefaults) -> Manifest:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    unknown = tuple(_unknown_type(raw))
    if unknown:  # whose fields nobody knows
        return Manifest(str(name or "(without a name)"), None, unknown)
    refusals = [str(each) for each in complaints(raw)]
    if name is None:
        refusals.insert(0, "metadata.name: it is missing; write it: the Service has the same name")
    if refusals:
        return Manifest(str(name or "(without a name)"), None, tuple(refusals))
    pruned = without_nulls(raw)
    whole = {**pruned, "metadata": {"namespace": namespace, "uid": "", **pruned["metadata"]}}
    objected = redact(objection(whole, defaults))
    return Manifest(str(name), None, (objected,)) if objected else Manifest(str(name), parse(whole))
