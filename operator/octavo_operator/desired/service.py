"""The Service that clients talk to: the serving pods of every revision that are not being drained."""

from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment


def service(deployment: LLMDeployment) -> dict[str, Any]:
    """On the port of the scheme, so that its URL needs none."""
    name, number = ("https", 443) if deployment.spec.access.tls else ("http", 80)
    port = {"name": name, "appProtocol": name, "port": number, "protocol": "TCP", "targetPort": names.PORT_NAME}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.child_metadata(deployment, names.service(deployment.name)),
        "spec": {"type": "ClusterIP", "selector": names.routed_selector(deployment.name), "ports": [port]},
    }
