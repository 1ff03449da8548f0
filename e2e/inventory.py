"""All that a namespace holds, of every kind that the API server lists: for what must be gone, and for what must be nowhere."""

import json

from e2e.kubernetes import Object
from e2e.workspace import Workspace

TOLD = ("Event", "Lease")  # about objects, not of them
_OF_EVERY_NAMESPACE = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}


async def everything(workspace: Workspace) -> list[Object]:
    """Every object of the namespace, Events and managed fields included."""
    kinds = await workspace.kubectl("api-resources", "--namespaced", "--verbs=list", "--output=name")
    listed = ",".join(kinds.split())
    text = await workspace.kubectl("get", listed, "--output=json", "--show-managed-fields", "--ignore-not-found")
    items = json.loads(text)["items"] if text.strip() else []
    return [dict(item) for item in items]


async def inventory(workspace: Workspace) -> frozenset[str]:
    """`Kind/name` of what somebody made here."""
    found = [(item["kind"], str(item["metadata"]["name"])) for item in await everything(workspace)]
    return frozenset(f"{kind}/{name}" for kind, name in found if kind not in TOLD) - {
        f"{kind}/{name}" for kind, name in _OF_EVERY_NAMESPACE
    }
