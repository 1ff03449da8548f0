"""Who may reach the pods and whom they may reach."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.desired.network_policy import download_policy, egress_ports, network_policy
from octavo_operator.effective import OperatorIdentity, RenderDefaults
from octavo_operator.weights import Weights

OPERATOR = OperatorIdentity("octavo-system")
OPERATOR_PEER = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "octavo-system"}},
    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "octavo-operator"}},
}
SHARED = {"mode": "SharedPVC", "sharedPVC": {"claimName": "models"}}


def test_the_own_namespace_and_the_operator_may_reach_the_port(deployment: Callable[..., Any]) -> None:
    spec = network_policy(deployment(), OPERATOR, ())["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [
        {"from": [{"podSelector": {}}, OPERATOR_PEER], "ports": [{"port": 8000, "protocol": "TCP"}]}
    ]


def test_named_peers_stand_for_the_own_namespace(deployment: Callable[..., Any]) -> None:
    peer = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    resource = deployment(access={"networkPolicy": {"allowFrom": [peer]}})
    assert network_policy(resource, OPERATOR, ())["spec"]["ingress"][0]["from"] == [peer, OPERATOR_PEER]


def test_pods_with_mounted_weights_reach_nothing(deployment: Callable[..., Any]) -> None:
    assert network_policy(deployment(), OPERATOR, ())["spec"]["egress"] == []


def test_pods_that_download_reach_names_and_the_source(deployment: Callable[..., Any]) -> None:
    egress = network_policy(deployment(), OPERATOR, (443, 8080))["spec"]["egress"]
    ports = [(port["port"], port["protocol"]) for rule in egress for port in rule["ports"]]
    assert ports == [(53, "UDP"), (53, "TCP"), (443, "TCP"), (8080, "TCP")]


def test_only_the_operator_may_ask_a_downloader(deployment: Callable[..., Any]) -> None:
    made = download_policy(deployment(), OPERATOR, (443,))
    assert made["metadata"]["name"] == "small-dl"
    assert made["spec"]["podSelector"]["matchLabels"]["octavo.dev/component"] == "downloader"
    assert made["spec"]["ingress"][0]["from"] == [OPERATOR_PEER]


@pytest.mark.parametrize(
    ("spec", "ports"),
    [
        ({}, [443]),
        ({"model": {"uri": "hf://a/b", "endpoint": "https://mirror.example:8443"}}, [443, 8443]),
        ({"model": {"uri": "hf://a/b", "endpoint": "http://mirror.example"}}, [80, 443]),
        ({"model": {"uri": "https://files.example:9000/m.gguf"}}, [443, 9000]),
        ({"model": {"uri": "pvc://weights/a"}}, []),
        ({"model": {"uri": "file:///a"}}, []),
        ({"cache": SHARED}, []),
    ],
)
def test_ports_follow_where_weights_come_from(
    spec: dict[str, Any], ports: list[int], deployment: Callable[..., Any]
) -> None:
    defaults = RenderDefaults(image="i", operator_version="1")
    assert egress_ports(deployment(**spec), Weights(), defaults) == ports


def test_the_operators_mirror_counts_too(deployment: Callable[..., Any]) -> None:
    defaults = RenderDefaults(image="i", operator_version="1", hub_endpoint="http://mirror.example:8080")
    assert egress_ports(deployment(), Weights(), defaults) == [443, 8080]
