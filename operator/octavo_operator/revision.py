"""Revisions: which fields of a spec make a new one, and the ControllerRevision that keeps what was rendered for it.

The hash covers only what the user wrote and a pod feels, never the operator's own defaults: a newer operator finds the
stored template under the same hash and restarts nothing.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from octavo_operator import names
from octavo_operator.api import LLMDeployment, Resources, Spec
from octavo_operator.observed import RevisionView
from octavo_operator.quantity import QuantityError, parse_quantity
from octavo_operator.timestamp import format_time

MOST_DIFFERENCES = 3  # named in a sentence


@dataclass(frozen=True, slots=True)
class RevisionRecord:
    """What a ControllerRevision says. `data` never changes once stored; the rest is the state of its rollout."""

    hash: str
    number: int  # rises with each new revision
    data: Mapping[str, Any]
    started_at: float | None = None
    succeeded_at: float | None = None
    failure: Mapping[str, Any] | None = None

    @property
    def template(self) -> Mapping[str, Any]:
        """The pod template as rendered when the revision was made."""
        found: Mapping[str, Any] = self.data["template"]
        return found


def revision_hash(spec: Spec) -> str:
    """10 hex digits of the fields that a pod feels, as the user set them.

    How many replicas there are, who scales them, how a rollout goes and who may reach the pods makes no new revision;
    neither does the same amount written in another way.
    """
    access, drain = spec.access, spec.rollout.drain
    felt = {
        "model": _set_fields(spec.model),
        "engine": _set_fields(spec.engine),
        "resources": _set_fields(spec.resources) | _amounts(spec.resources),
        "startup": _set_fields(spec.startup),
        "liveness": _set_fields(spec.liveness),
        "cache": _cache(spec),
        "apiKeys": None if access.api_keys is None else {"required": access.api_keys.required is not False},
        "tls": _set_fields(access.tls) if access.tls else None,
        "logPrompts": spec.observability.log_prompts,
        "drain": _without_unset({"timeout": drain.timeout_seconds, "unroute": drain.unroute_seconds}),
        "pod": _set_fields(spec.pod),
    }
    text = json.dumps(_without_unset(felt), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[: names.REVISION_DIGITS]


def revision_data(
    template: Mapping[str, Any],
    effective: Mapping[str, Any],
    model: Mapping[str, Any],
    memory_plan: Mapping[str, Any],
    egress_ports: Iterable[int],
    operator_version: str,
) -> dict[str, Any]:
    """`.data` of a new ControllerRevision."""
    return {
        "template": template,
        "effective": effective,
        "model": model,
        "memoryPlan": memory_plan,
        "egressPorts": sorted(egress_ports),
        "operatorVersion": operator_version,
    }


def controller_revision(deployment: LLMDeployment, record: RevisionRecord) -> dict[str, Any]:
    """The manifest. Annotations carry what changes during a rollout, since the API server keeps `data` as it is."""
    metadata = names.child_metadata(
        deployment, names.revision(deployment.name, record.hash), {names.REVISION: record.hash}
    )
    annotations = _annotations(record)
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata | ({"annotations": annotations} if annotations else {}),
        "revision": record.number,
        "data": record.data,
    }


def record_of(view: RevisionView) -> RevisionRecord:
    """Of an observed revision."""
    return RevisionRecord(view.hash, view.number, view.data, view.started_at, view.succeeded_at, view.failure)


def egress_ports(revisions: Iterable[RevisionRecord | RevisionView]) -> frozenset[int]:
    """Ports that pods of these revisions fetch weights from: those that still serve may restart, too."""
    return frozenset(port for revision in revisions for port in revision.data.get("egressPorts") or ())


def upgrade_sentence(data: Mapping[str, Any], fresh_template: Mapping[str, Any], operator_version: str) -> str:
    """What a newer operator would render differently; empty when nothing."""
    places = _differences(data.get("template") or {}, fresh_template)
    if not places:
        return ""
    shown = ", ".join(places[:MOST_DIFFERENCES])
    more = f" and {len(places) - MOST_DIFFERENCES} more" if len(places) > MOST_DIFFERENCES else ""
    return (
        f"Rendered by operator {data.get('operatorVersion', 'unknown')}; operator {operator_version} would change "
        f"{shown}{more}. Nothing restarts until the spec changes."
    )


def _set_fields(part: msgspec.Struct) -> dict[str, Any]:
    """The fields that the user set, under their names in the API. Kubernetes' own forms below stay untouched: there a
    null has a meaning.
    """
    fields: dict[str, Any] = {}
    for name, api_name in zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True):
        value = getattr(part, name)
        fields[api_name] = _set_fields(value) if isinstance(value, msgspec.Struct) else value
    return _without_unset(fields)


def _amounts(resources: Resources) -> dict[str, int]:
    """`1Gi` and 1073741824 are one amount. What is none is refused where it is used."""
    amounts = {}
    for name in ("cpu", "memory", "shm"):
        value = getattr(resources, name)
        try:
            if value is not None:
                amounts[name] = parse_quantity(name, value)
        except QuantityError:
            continue
    return amounts


def _cache(spec: Spec) -> dict[str, Any]:
    """A claim may grow without a restart; another claim is another place to read from."""
    shared = spec.cache.shared_pvc
    return _without_unset({"mode": spec.cache.mode, "claimName": shared.claim_name if shared else None})


def _without_unset(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and value not in ((), {})}


def _annotations(record: RevisionRecord) -> dict[str, str]:
    annotations = {}
    if record.started_at is not None:
        annotations[names.STARTED_AT] = format_time(record.started_at)
    if record.succeeded_at is not None:
        annotations[names.SUCCEEDED_AT] = format_time(record.succeeded_at)
    if record.failure is not None:
        annotations[names.FAILURE] = json.dumps(dict(record.failure), sort_keys=True)
    return annotations


def _differences(stored: Any, fresh: Any, path: str = "") -> list[str]:
    """Places where two templates differ; items of lists by their name where they have one."""
    if stored == fresh:
        return []
    if isinstance(stored, Mapping) and isinstance(fresh, Mapping):
        keys = sorted(stored.keys() | fresh.keys())
        return [
            place
            for key in keys
            for place in _differences(stored.get(key), fresh.get(key), f"{path}.{key}" if path else key)
        ]
    if isinstance(stored, list) and isinstance(fresh, list) and _named(stored) and _named(fresh):
        return _differences({item["name"]: item for item in stored}, {item["name"]: item for item in fresh}, path)
    return [path]


def _named(items: list[Any]) -> bool:
    return bool(items) and all(isinstance(item, Mapping) and "name" in item for item in items)
