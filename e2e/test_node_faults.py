"""Nodes that die and nodes that are emptied: requests go on, and replicas come back elsewhere.

For the test cluster, whose nodes are ours to break; not beside other tests, which would be broken too.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from e2e.cluster.faults import Faults
from e2e.kubernetes import Object, condition, wait_for
from e2e.manifests import START_S, small_model
from e2e.streams import Chat, ask, open_streams, wait_reachable
from e2e.workspace import Workspace

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("model_claim")]

CAPITAL = "What is the capital of France?"
NOTICED_S = 90.0  # the control plane waits 20 s for a node's sign of life, and its pods 20 s more
STREAMS = 8
TOKENS = 48


async def test_replicas_of_a_lost_node_come_back_on_another(workspace: Workspace, faults: Faults) -> None:
    await workspace.apply(small_model("smollm", replicas=2))
    await workspace.wait_ready("smollm", START_S)
    first, second = await workspace.pods("smollm")
    lost, other = first["spec"]["nodeName"], second["spec"]["nodeName"]
    assert lost != other, "replicas keep apart where they can"
    url = await workspace.url("smollm")
    await wait_reachable(url)
    with faults.node_lost(lost):
        seen = await workspace.wait_condition("smollm", "Ready", "False", within=NOTICED_S)
        assert condition(seen, "Available")["status"] == "True", "the other replica serves"
        await wait_reachable(url, in_a_row=10)  # no proxy sends to the lost node any more
        assert "Paris" in await ask(url, "smollm", CAPITAL)
        await workspace.wait_ready("smollm", NOTICED_S + START_S)
        serving = [pod for pod in await workspace.pods("smollm") if is_ready(pod)]
        assert [pod["spec"]["nodeName"] for pod in serving] == [other, other]
        assert "Paris" in await ask(url, "smollm", CAPITAL)
    await workspace.wait_ready("smollm", START_S)  # with the node back
    await wait_for("the lost pod to be gone", lambda: is_gone(workspace, first), NOTICED_S)
    assert len(await workspace.pods("smollm")) == 2


async def test_a_drained_node_loses_no_stream_and_never_the_last_replica(workspace: Workspace, faults: Faults) -> None:
    """Both replicas are on the node that is drained: the disruption budget lets them go one after the other."""
    node, other = (each.node.name for each in faults.cluster.nodes)
    async with cordoned(workspace, other):
        await workspace.apply(small_model("smollm", replicas=2))
        await workspace.wait_ready("smollm", START_S)
    pods = await workspace.pods("smollm")
    assert {pod["spec"]["nodeName"] for pod in pods} == {node}
    url = await workspace.url("smollm")
    await wait_reachable(url)
    chat = Chat(url, "smollm", max_tokens=TOKENS)
    fewest = len(pods)
    async with cordoned(workspace, node), open_streams(chat, STREAMS) as tally:
        draining = asyncio.create_task(drain(workspace, node))
        while not draining.done():
            fewest = min(fewest, sum(is_ready(pod) for pod in await workspace.pods("smollm")))
            await asyncio.sleep(0.2)
        await draining
        await workspace.wait_ready("smollm", START_S)
    assert tally.failed == 0, str(tally)
    assert tally.done > 0
    assert fewest >= 1
    assert {pod["spec"]["nodeName"] for pod in await workspace.pods("smollm")} == {other}


@pytest.mark.usefixtures("faults")
async def test_a_single_replica_does_not_block_a_drain(workspace: Workspace) -> None:
    await workspace.apply(small_model("smollm"))
    await workspace.wait_ready("smollm", START_S)
    [pod] = await workspace.pods("smollm")
    assert await workspace.get("PodDisruptionBudget", "smollm") is None
    node = pod["spec"]["nodeName"]
    async with cordoned(workspace, node):
        await drain(workspace, node)
        await workspace.wait_ready("smollm", START_S)
        [after] = await workspace.pods("smollm")
        assert after["spec"]["nodeName"] != node


@asynccontextmanager
async def cordoned(workspace: Workspace, node: str) -> AsyncIterator[None]:
    """No new pod comes to the node inside the block."""
    await workspace.kubectl("cordon", node)
    try:
        yield
    finally:
        await workspace.kubectl("uncordon", node)


async def drain(workspace: Workspace, node: str) -> None:
    """`kubectl drain`, of the test's own pods; other pods of the node stay."""
    selector = "--pod-selector=octavo.dev/deployment=smollm"
    await workspace.kubectl("drain", node, selector, "--delete-emptydir-data", f"--timeout={START_S:.0f}s")


async def is_gone(workspace: Workspace, pod: Object) -> bool:
    return await workspace.get("Pod", pod["metadata"]["name"]) is None


def is_ready(pod: Object) -> bool:
    return condition(pod, "Ready").get("status") == "True"
