"""The ServiceAccount of the pods: an identity to bind things to, without a token in the pod."""

from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment


def service_account(deployment: LLMDeployment) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": names.child_metadata(deployment, names.service_account(deployment.name)),
        "automountServiceAccountToken": False,
    }
