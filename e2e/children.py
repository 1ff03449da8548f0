"""What the operator made for one LLMDeployment, and whether anything of it was touched; who owns which field of the spec."""

import time
from collections.abc import Iterable, Mapping

from e2e.kubernetes import NeverHappenedError, Object, wait_for
from e2e.workspace import Workspace

KINDS = (
    "ControllerRevision",
    "Deployment",
    "Job",
    "NetworkPolicy",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "Secret",
    "Service",
    "ServiceAccount",
)
QUIET_S = 3.0  # unchanged for so long: nobody works on it any more

Children = Mapping[str, tuple[str, str]]
"""Kind and name -> uid and resourceVersion: equal ones were not written in between, by anybody."""


async def children_of(workspace: Workspace, name: str) -> Children:
    found = [
        (kind, child["metadata"])
        for kind in KINDS
        for child in await workspace.select(kind, f"octavo.dev/deployment={name}")
    ]
    return {f"{kind} {own['name']}": (own["uid"], own["resourceVersion"]) for kind, own in found}


async def quiet_children(workspace: Workspace, name: str, within: float = 60) -> Children:
    """The children once nothing has been written to them for a while."""
    last: Children = {}
    unchanged_since = 0.0

    async def probe() -> bool:
        nonlocal last, unchanged_since
        now, seen = time.monotonic(), await children_of(workspace, name)
        if seen != last:
            last, unchanged_since = seen, now
        return now - unchanged_since >= QUIET_S

    await wait_for(f"the children of {name} to be quiet", probe, within)
    return last


def changed(before: Children, after: Children) -> list[str]:
    """What differs, for a message."""
    return [
        f"{child}: {before.get(child, 'absent')} -> {after.get(child, 'absent')}"
        for child in sorted({*before, *after})
        if before.get(child) != after.get(child)
    ]


def owners(resource: Object, *path: str) -> set[str]:
    """Who says so, by managedFields: managers that own this field of the object."""
    return {entry["manager"] for entry in resource["metadata"]["managedFields"] if _has(entry, path)}


def written_by(resource: Object, manager: str) -> set[str]:
    """The top-level fields of the object that this manager owns."""
    entries = [entry for entry in resource["metadata"]["managedFields"] if entry["manager"] == manager]
    if not entries:
        raise NeverHappenedError(f"{manager} owns nothing of {resource['metadata']['name']}")
    return {field.removeprefix("f:") for entry in entries for field in entry["fieldsV1"]}


def _has(entry: Object, path: Iterable[str]) -> bool:
    below: Object | None = entry["fieldsV1"]
    for step in path:
        below = (below or {}).get(f"f:{step}")
    return below is not None
