"""NetworkPolicies: what is not named here may not reach the pods, and they reach nothing.

Policies add up, so a user who needs more writes a policy of his own; `spec.access.networkPolicy.mode: Disabled` drops ours.
"""

from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from octavo_operator import names
from octavo_operator.api import LLMDeployment
from octavo_operator.effective import PORT, OperatorIdentity, RenderDefaults
from octavo_operator.weights import Download, Weights, place_of

_HTTPS = 443
_DNS = 53


def egress_ports(deployment: LLMDeployment, weights: Weights, defaults: RenderDefaults) -> list[int]:
    """Ports that a serving pod fetches weights from; none when they lie on a volume."""
    endpoint = deployment.spec.model.endpoint or defaults.hub_endpoint
    return source_ports(deployment, endpoint) if isinstance(place_of(deployment, weights), Download) else []


def source_ports(deployment: LLMDeployment, endpoint: str) -> list[int]:
    """HTTPS, to which hubs redirect, and the port of the endpoint itself."""
    uri = deployment.spec.model.uri
    parts = urlsplit(uri if uri.startswith("https://") else endpoint)
    return sorted({_HTTPS, parts.port or (80 if parts.scheme == "http" else _HTTPS)})


def network_policy(deployment: LLMDeployment, operator: OperatorIdentity, ports: Collection[int]) -> dict[str, Any]:
    """Of the serving pods. `ports`: of all revisions that still have pods, since those may restart."""
    peers = [dict(peer) for peer in deployment.spec.access.network_policy.allow_from] or [{"podSelector": {}}]
    return _policy(
        deployment,
        names.network_policy(deployment.name),
        names.server_selector(deployment.name),
        [*peers, _operator_pods(operator)],
        ports,
    )


def download_policy(deployment: LLMDeployment, operator: OperatorIdentity, ports: Collection[int]) -> dict[str, Any]:
    """Of the downloader's pods; only the operator asks them for their progress."""
    return _policy(
        deployment,
        names.download_policy(deployment.name),
        names.downloader_selector(deployment.name),
        [_operator_pods(operator)],
        ports,
    )


def _policy(
    deployment: LLMDeployment,
    name: str,
    selector: dict[str, str],
    peers: list[dict[str, Any]],
    ports: Collection[int],
) -> dict[str, Any]:
    ingress = {"from": peers, "ports": [{"port": PORT, "protocol": "TCP"}]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": names.child_metadata(deployment, name),
        "spec": {
            "podSelector": {"matchLabels": selector},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [ingress],
            "egress": [_dns(), _sources(ports)] if ports else [],
        },
    }


def _operator_pods(operator: OperatorIdentity) -> dict[str, Any]:
    return {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": operator.namespace}},
        "podSelector": {"matchLabels": {names.APP_NAME: names.OPERATOR_APP}},
    }


def _dns() -> dict[str, Any]:
    return {"ports": [{"port": _DNS, "protocol": "UDP"}, {"port": _DNS, "protocol": "TCP"}]}


def _sources(ports: Collection[int]) -> dict[str, Any]:
    return {"ports": [{"port": port, "protocol": "TCP"} for port in sorted(ports)]}
