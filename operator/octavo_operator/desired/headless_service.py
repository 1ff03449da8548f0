"""The headless Service: the addresses of all serving pods, ready or not, for scraping and for a look at one replica."""

from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment
from octavo_operator.effective import PORT


def headless_service(deployment: LLMDeployment) -> dict[str, Any]:
    scheme = "https" if deployment.spec.access.tls else "http"
    port = {
        "name": names.PORT_NAME,
        "appProtocol": scheme,
        "port": PORT,
        "protocol": "TCP",
        "targetPort": names.PORT_NAME,
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.child_metadata(deployment, names.pods_service(deployment.name)),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": names.server_selector(deployment.name),
            "ports": [port],
        },
    }
