"""What Prometheus is told."""

from collections.abc import Callable
from typing import Any

from octavo_operator.desired.pod_monitor import pod_monitor


def test_every_server_is_scraped_with_its_revision_as_a_label(deployment: Callable[..., Any]) -> None:
    spec = pod_monitor(deployment())["spec"]
    assert spec["podMetricsEndpoints"] == [{"port": "http", "path": "/metrics", "scheme": "http"}]
    assert "octavo.dev/revision" in spec["podTargetLabels"]
    assert "octavo.dev/routed" not in spec["selector"]["matchLabels"]


def test_certificates_are_not_compared_with_a_pods_address(deployment: Callable[..., Any]) -> None:
    (endpoint,) = pod_monitor(deployment(access={"tls": {"secretName": "cert"}}))["spec"]["podMetricsEndpoints"]
    assert (endpoint["scheme"], endpoint["tlsConfig"]) == ("https", {"insecureSkipVerify": True})
