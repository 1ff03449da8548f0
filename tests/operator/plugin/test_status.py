"""`status` is the column view of `kubectl get`, with the message of what is not well."""

import asyncio
from typing import Any

import pytest

from octavo_operator.plugin import status as module
from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.status import status
from octavo_operator.testing import FakeKube


async def show(cluster: Cluster, terminal: Any, name: str | None = None, **flags: bool) -> int:
    return await status(cluster, name, **{"everywhere": False, "watch": False, **flags}, console=terminal.console)


async def test_one_row_per_model(cluster: Cluster, kube: FakeKube, terminal: Any, samples: Any) -> None:
    message = "1 of 1 replicas serve."
    kube.put(samples.deployment("llama", reason="Serving", phase="Ready", ready="1/1", message=message, Ready="True"))
    assert await show(cluster, terminal) == 0
    assert [line.split()[:4] for line in terminal.text.splitlines()] == [
        ["NAME", "PHASE", "READY", "REASON"],
        ["llama", "Ready", "1/1", "Serving"],
        ["smollm", "Loading", "0/1", "Loading"],
    ]
    assert "It loads." in terminal.text
    assert message not in terminal.text


async def test_all_namespaces_have_their_column(cluster: Cluster, terminal: Any) -> None:
    await show(cluster, terminal, everywhere=True)
    assert terminal.text.splitlines()[0].startswith("NAMESPACE")


async def test_one_model_shows_what_it_runs(cluster: Cluster, kube: FakeKube, terminal: Any, samples: Any) -> None:
    kube.put(
        samples.deployment(url="http://smollm.team.svc", rollout={"strategy": "InPlace", "reason": "No GPU is free."})
    )
    await show(cluster, terminal, "smollm")
    assert "http://smollm.team.svc" in terminal.text
    assert "InPlace No GPU is free." in terminal.text
    assert "Ready=False, Reconciling=True" in terminal.text


async def test_long_messages_fold_within_the_terminal(
    cluster: Cluster, kube: FakeKube, terminal: Any, samples: Any
) -> None:
    kube.put(samples.deployment("a" * 40, message="0/12 nodes are available: 12 Insufficient nvidia.com/gpu. " * 5))
    await show(cluster, terminal, everywhere=True)
    assert terminal.reads_well()


POD = "a-model-of-a-certain-length-1a2b3c4d5e-x7k2p"


async def test_each_model_is_one_line_of_a_pipe(cluster: Cluster, kube: FakeKube, pipe: Any, samples: Any) -> None:
    for number in range(20):
        kube.put(samples.deployment(f"m{number:02}", message=f"Pod {POD}: Loading.\n" + "It is long. " * 60))
    await show(cluster, pipe)
    lines = pipe.text.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", *(f"m{number:02}" for number in range(20)), "smollm"]
    assert all(POD in line for line in lines[1:-1])


async def test_no_name_is_broken_on_a_narrow_screen(
    cluster: Cluster, kube: FakeKube, terminal: Any, samples: Any
) -> None:
    kube.put(samples.deployment("a" * 40, reason="WaitingForGPU", message=f"Pod {POD}: No node has a GPU. " * 3))
    await show(cluster, terminal)
    assert "a" * 40 in terminal.text
    assert terminal.text.count(POD) == 3
    assert terminal.reads_well()


@pytest.mark.parametrize("number", [1, 2])
async def test_pods_that_go_are_told_of_a_model_that_is_well(
    cluster: Cluster, kube: FakeKube, pipe: Any, samples: Any, number: int
) -> None:
    kube.put(samples.deployment(phase="Ready", reason="Serving", ready="1/1", Ready="True", drainingReplicas=number))
    await show(cluster, pipe)
    words = {1: "1 pod more finishes its streams.", 2: "2 pods more finish their streams."}
    assert pipe.text.endswith(words[number])


async def test_pods_that_go_are_told_once(cluster: Cluster, kube: FakeKube, pipe: Any, samples: Any) -> None:
    told = "1 pods more than wanted finish their streams."
    kube.put(samples.deployment(reason="Draining", message=told, drainingReplicas=1))
    await show(cluster, pipe)
    assert pipe.text.count("streams") == 1


async def test_an_empty_namespace_says_where_to_look(kube: FakeKube, terminal: Any) -> None:
    with pytest.raises(PluginError, match=r"Namespace empty has no LLMDeployment"):
        await show(Cluster(kube, "empty"), terminal)


async def test_a_resource_without_a_status_is_pending(
    cluster: Cluster, kube: FakeKube, terminal: Any, samples: Any
) -> None:
    raw = samples.deployment("fresh")
    del raw["status"]
    kube.put(raw)
    await show(cluster, terminal)
    assert ["fresh", "Pending"] in [line.split() for line in terminal.text.splitlines()]


async def test_watching_goes_on_with_what_changed(
    cluster: Cluster, kube: FakeKube, terminal: Any, samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.01)
    watching = asyncio.create_task(show(cluster, terminal, watch=True))
    await asyncio.sleep(0.05)
    kube.put(samples.deployment(phase="Ready", reason="Serving", Ready="True"))
    await asyncio.sleep(0.05)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    assert "Serving" in terminal.text
