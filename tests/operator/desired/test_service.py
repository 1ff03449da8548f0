"""The Service for clients."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.desired.service import service


@pytest.mark.parametrize(
    ("access", "name", "number"), [({}, "http", 80), ({"tls": {"secretName": "cert"}}, "https", 443)]
)
def test_the_port_is_the_schemes_own(
    access: dict[str, Any], name: str, number: int, deployment: Callable[..., Any]
) -> None:
    made = service(deployment(access=access))
    (port,) = made["spec"]["ports"]
    assert (port["name"], port["port"], port["targetPort"]) == (name, number, "http")
    assert made["metadata"]["name"] == "small"


def test_only_routed_servers_are_behind_it(deployment: Callable[..., Any]) -> None:
    assert service(deployment())["spec"]["selector"] == {
        "octavo.dev/deployment": "small",
        "octavo.dev/component": "server",
        "octavo.dev/routed": "true",
    }
