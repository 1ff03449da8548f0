"""The Service of every pod's address."""

from collections.abc import Callable
from typing import Any

from octavo_operator.desired.headless_service import headless_service


def test_pods_that_load_or_drain_are_in_it_too(deployment: Callable[..., Any]) -> None:
    made = headless_service(deployment())
    assert made["metadata"]["name"] == "small-pods"
    assert made["spec"]["clusterIP"] == "None"
    assert made["spec"]["publishNotReadyAddresses"] is True
    assert "octavo.dev/routed" not in made["spec"]["selector"]


def test_it_says_which_protocol_the_pods_speak(deployment: Callable[..., Any]) -> None:
    made = headless_service(deployment(access={"tls": {"secretName": "cert"}}))
    assert made["spec"]["ports"][0]["appProtocol"] == "https"
