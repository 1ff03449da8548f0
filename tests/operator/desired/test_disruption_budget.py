"""One replica at a time."""

from collections.abc import Callable
from typing import Any

from octavo_operator.desired.disruption_budget import disruption_budget


def test_a_node_drain_takes_one_replica_and_never_waits_for_a_broken_one(deployment: Callable[..., Any]) -> None:
    spec = disruption_budget(deployment())["spec"]
    assert spec["maxUnavailable"] == 1
    assert spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert spec["selector"]["matchLabels"]["octavo.dev/component"] == "server"
