"""What the operator's log tells of what it does: one line for each thing done, at level info.

Told where it was done, so a pass that changes nothing tells nothing. Names, kinds and numbers only: what is in an object
may be a secret.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from octavo_operator import names
from octavo_operator.names import Key

log = logging.getLogger(__name__)

Raw = Mapping[str, Any]


def tell(resource: Key, deed: str, **facts: Any) -> None:
    """One line about one LLMDeployment."""
    log.info(deed, extra={"fields": {"namespace": resource[0], "deployment": resource[1], **facts}})


def tell_written(resource: Key, manifest: Raw, seen: Raw | None) -> None:
    """A child was made or changed. `seen`: what it was before; of what is told better, that it changed says nothing."""
    news = list(_news(manifest, seen or {}))
    if seen is None or not news:
        deed = "child created" if seen is None else "child changed"
        tell(resource, deed, kind=manifest["kind"], name=manifest["metadata"]["name"])
    for what, facts in news:
        tell(resource, what, revision=_revision(manifest), **facts)


def _news(manifest: Raw, seen: Raw) -> Iterator[tuple[str, dict[str, Any]]]:
    if manifest["kind"] == "Deployment":
        before, now = ((raw.get("spec") or {}).get("replicas") for raw in (seen, manifest))
        if now is not None and now != (before or 0):
            yield "replicas changed", {"from": before or 0, "to": now}
    elif manifest["kind"] == "ControllerRevision":
        before, now = ((raw.get("metadata") or {}).get("annotations") or {} for raw in (seen, manifest))
        changed = {key: value for key, value in now.items() if before.get(key) != value}
        if names.STARTED_AT in changed:
            yield "rollout began", {}
        if names.SUCCEEDED_AT in changed:
            yield "rollout ended", {}
        if names.FAILURE in changed:
            yield "rollout failed", {"reason": json.loads(changed[names.FAILURE]).get("reason", "")}


def _revision(manifest: Raw) -> str:
    return str(manifest["metadata"]["labels"][names.REVISION])
