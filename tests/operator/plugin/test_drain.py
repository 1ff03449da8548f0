"""`drain` asks; the operator decides when."""

from typing import Any

import pytest

from octavo_operator import names
from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.drain import drain
from octavo_operator.plugin.errors import PluginError
from octavo_operator.testing import FakeKube


def asked(kube: FakeKube) -> str | None:
    raw = kube.find("Pod", "team", "smollm-a")
    assert raw is not None
    value: str | None = (raw["metadata"].get("annotations") or {}).get(names.DRAIN_REQUESTED)
    return value


async def test_the_request_is_an_annotation_and_can_be_taken_back(
    cluster: Cluster, kube: FakeKube, terminal: Any, samples: Any
) -> None:
    kube.put(samples.serving_pod("smollm-a", samples.running()))
    assert await drain(cluster, "smollm-a", undo=False, now=0.0, console=terminal.console) == 0
    assert asked(kube) == "1970-01-01T00:00:00Z"
    assert await drain(cluster, "smollm-a", undo=True, now=0.0, console=terminal.console) == 0
    assert asked(kube) is None


async def test_what_will_happen_is_said(cluster: Cluster, kube: FakeKube, terminal: Any, samples: Any) -> None:
    kube.put(samples.serving_pod("smollm-a", samples.running()))
    await drain(cluster, "smollm-a", undo=False, now=0.0, console=terminal.console)
    assert "finish its streams and be replaced" in terminal.text
    assert terminal.reads_well()


async def test_the_command_that_is_suggested_can_be_copied(
    cluster: Cluster, kube: FakeKube, terminal: Any, pipe: Any, samples: Any
) -> None:
    kube.put(samples.serving_pod("smollm-a", samples.running()))
    for each in (terminal, pipe):
        await drain(cluster, "smollm-a", undo=False, now=0.0, console=each.console)
        assert each.text.splitlines()[-1].endswith("kubectl octavo status smollm --watch")
    assert len(pipe.text.splitlines()) == 1


async def test_a_pod_of_something_else_is_left_alone(
    cluster: Cluster, kube: FakeKube, terminal: Any, samples: Any
) -> None:
    kube.put(samples.serving_pod("dl", revision=""))
    with pytest.raises(PluginError):
        await drain(cluster, "dl", undo=False, now=0.0, console=terminal.console)
    assert kube.writes == []
