"""The PodMonitor: Prometheus scrapes every serving pod. Only where the cluster has this kind."""

from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment


def pod_monitor(deployment: LLMDeployment) -> dict[str, Any]:
    """/metrics asks for no key. Certificates name the Service, not a pod, so they are not compared with an address."""
    endpoint: dict[str, Any] = {"port": names.PORT_NAME, "path": "/metrics", "scheme": "http"}
    if deployment.spec.access.tls:
        endpoint |= {"scheme": "https", "tlsConfig": {"insecureSkipVerify": True}}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": names.child_metadata(deployment, names.pod_monitor(deployment.name)),
        "spec": {
            "selector": {"matchLabels": names.server_selector(deployment.name)},
            "podTargetLabels": [names.DEPLOYMENT, names.REVISION],
            "podMetricsEndpoints": [endpoint],
        },
    }
