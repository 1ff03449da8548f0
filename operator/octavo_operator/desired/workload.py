"""The Deployment of one revision. Its template never changes; only its replicas do."""

from collections.abc import Mapping
from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment

_NO_DEADLINE = 2**31 - 1  # Kubernetes' own word for none: the operator has a deadline that knows why a pod waits


def workload(
    deployment: LLMDeployment, revision_hash: str, template: Mapping[str, Any], replicas: int | None
) -> dict[str, Any]:
    """`replicas` of None is not sent, so that whoever set it keeps it.

    A rolling update that takes one pod down first: should somebody run `kubectl rollout restart`, the pods go one by
    one and never ask for a GPU more than there is. Recreate would take all of them down at once.
    """
    spec: dict[str, Any] = {
        "selector": {"matchLabels": names.revision_selector(deployment.name, revision_hash)},
        "template": template,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "revisionHistoryLimit": 0,
        "progressDeadlineSeconds": _NO_DEADLINE,
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.child_metadata(
            deployment, names.revision(deployment.name, revision_hash), {names.REVISION: revision_hash}
        ),
        "spec": spec,
    }
