"""The PodDisruptionBudget: a node drain takes one replica at a time."""

from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment

FEWEST_REPLICAS = 2  # a budget over a single replica would block every node drain for ever


def disruption_budget(deployment: LLMDeployment) -> dict[str, Any]:
    """Pods that are not ready have nothing to protect and may always be evicted."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.child_metadata(deployment, names.disruption_budget(deployment.name)),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": names.server_selector(deployment.name)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
