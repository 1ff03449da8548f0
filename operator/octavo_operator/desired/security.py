"""Security contexts that a namespace enforcing the `restricted` Pod Security Standard admits.

No user id is set: the image brings a numeric one, and platforms that choose one at random may.
"""

from typing import Any


def pod_security(fs_group: int | None = None) -> dict[str, Any]:
    """`fs_group` only where the pod writes on a claim; the root of a fresh one belongs to somebody else."""
    context: dict[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if fs_group is not None:
        context |= {"fsGroup": fs_group, "fsGroupChangePolicy": "OnRootMismatch"}
    return context


def container_security() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
