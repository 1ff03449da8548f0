"""The story of load: replicas come when requests wait or the cache fills, and go when they do not; or somebody else decides.

The pods take two requests at a time and have a small cache, so that a few streams are a load.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from e2e.children import owners
from e2e.cluster.faults import Faults
from e2e.kubernetes import POLL_S, Object, condition, holds, wait_for
from e2e.streams import Chat, open_streams
from e2e.workspace import Workspace

pytestmark = pytest.mark.usefixtures("model_claim")

NAME = "smollm"
GIT = "argocd-controller"
START_S = 240.0  # of pods, on a small machine that does other things too
SEATS = 2  # requests that a replica runs at a time
WINDOW_S = 15
LOST_S = 30  # after so long without metrics they are lost
KV_CACHE = "26000000"  # bytes: about 70 blocks of 16 tokens


def manifest(**spec: Any) -> Object:
    engine = {"device": "cpu", "maxModelLen": 1024, "maxNumSeqs": SEATS, **spec.pop("engine", {})}
    return {
        "apiVersion": "octavo.dev/v1alpha1",
        "kind": "LLMDeployment",
        "metadata": {"name": NAME},
        "spec": {
            "model": {"uri": "pvc://model"},
            "engine": engine,
            "resources": {"cpu": "200m", "memory": "1500Mi"},
            "rollout": {"drain": {"timeoutSeconds": 120, "unrouteSeconds": 1}},
            **spec,
        },
    }


def auto(most: int, window: int = WINDOW_S, **targets: float) -> Object:
    """Quick to act, so that a test need not wait."""
    return {
        "mode": "Auto",
        "auto": {
            "maxReplicas": most,
            "targets": targets,
            "scaleUp": {"stabilizationSeconds": 6, "maxPods": 3, "periodSeconds": 5},
            "scaleDown": {"stabilizationSeconds": window, "maxPods": 1, "periodSeconds": 5},
        },
    }


async def apply_as_git(workspace: Workspace, given: Object) -> None:
    options = ("--server-side", f"--field-manager={GIT}", "--filename=-")
    await workspace.kubectl("apply", *options, stdin=yaml.safe_dump(given))


async def wait_serving(workspace: Workspace, count: int, within: float = START_S) -> None:
    async def probe() -> bool:
        status = (await workspace.deployment(NAME)).get("status", {})
        return bool(status.get("readyReplicas") == count and status.get("replicas") == count)

    await wait_for(f"{count} replicas to serve, and no other", probe, within)


async def desired(workspace: Workspace) -> int:
    return int((await workspace.deployment(NAME))["status"].get("scaling", {}).get("desired", -1))


@dataclass(slots=True)
class Numbers:
    """What was wanted and what ran, as it changed."""

    desired: list[int] = field(default_factory=list)
    pods: list[int] = field(default_factory=list)

    def add(self, wanted: int, pods: int) -> None:
        for values, value in ((self.desired, wanted), (self.pods, pods)):
            if values[-1:] != [value]:
                values.append(value)


@asynccontextmanager
async def numbers(workspace: Workspace) -> AsyncIterator[Numbers]:
    """Of the whole block."""
    seen = Numbers()

    async def look() -> None:
        while True:
            seen.add(await desired(workspace), len(await workspace.pods(NAME)))
            await asyncio.sleep(POLL_S)

    task = asyncio.create_task(look())
    try:
        yield seen
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_waiting_requests_bring_replicas_and_a_calm_window_takes_them_away(workspace: Workspace) -> None:
    """1 -> 3 without asking for more while they start, then 3 -> 1 with a stream open all along: none is cut."""
    await apply_as_git(workspace, manifest(scaling=auto(5, waitingRequests=2, kvCacheUsage=0.99)))
    await workspace.wait_ready(NAME, START_S)
    url = await workspace.url(NAME)
    async with numbers(workspace) as seen, open_streams(Chat(url, NAME, max_tokens=24), 1) as steady:
        async with open_streams(Chat(url, NAME, max_tokens=24), 7) as load:
            # 8 requests, 2 run, 6 wait, 2 may wait per replica: 3 replicas
            await wait_serving(workspace, 3)
            await holds("3 replicas under load", lambda: _is_desired(workspace, 3), WINDOW_S)
        calm_since = time.monotonic()
        await wait_serving(workspace, 1)
        calm = time.monotonic() - calm_since
    assert max(seen.desired) == 3, seen
    assert max(seen.pods) == 3, seen
    assert calm >= WINDOW_S
    assert (load.failed, steady.failed) == (0, 0), f"{load}\n{steady}"
    scaling = (await workspace.deployment(NAME))["status"]["scaling"]
    decisions = scaling["decisions"]
    assert len(decisions) <= 5
    assert (decisions[0]["from"], decisions[-1]["to"]) == (1, 1)
    assert "waiting requests" in decisions[0]["reason"]
    assert [each["to"] for each in decisions[-2:]] == [2, 1], decisions
    await _nobody_owns_replicas(workspace)


async def _is_desired(workspace: Workspace, count: int) -> bool:
    return await desired(workspace) == count


async def _nobody_owns_replicas(workspace: Workspace) -> None:
    seen = await workspace.deployment(NAME)
    assert owners(seen, "spec", "replicas") == set()
    assert seen["metadata"]["generation"] == 1, "the spec was written"


@pytest.mark.alone
async def test_a_full_cache_alone_brings_a_replica_and_lost_metrics_hold_the_number(
    workspace: Workspace, faults: Faults
) -> None:
    scaling = auto(2, window=LOST_S + 10, waitingRequests=10_000, kvCacheUsage=0.3)
    engine = {"maxNumSeqs": 8, "extraArgs": ["--kv-cache-memory-bytes", KV_CACHE]}
    await apply_as_git(workspace, manifest(engine=engine, scaling=scaling))
    await workspace.wait_ready(NAME, START_S)
    async with AsyncExitStack() as load:
        chat = Chat(await workspace.url(NAME), NAME, max_tokens=300)
        tally = await load.enter_async_context(open_streams(chat, 3))
        await wait_serving(workspace, 2)
        decisions = (await workspace.deployment(NAME))["status"]["scaling"]["decisions"]
        assert "KV cache use" in decisions[0]["reason"], decisions
        with faults.metrics_unreadable():
            await load.aclose()  # nothing runs any more, and nobody can know
            await workspace.wait_condition(NAME, "ScalingActive", "False", reason="MetricsLost", within=LOST_S + 30)
            await holds("2 replicas without metrics", lambda: _is_desired(workspace, 2), LOST_S)
            seen = await workspace.deployment(NAME)
            assert condition(seen, "Ready")["status"] == "True"
            assert seen["status"]["readyReplicas"] == 2
    assert tally.failed == 0, tally
    await workspace.wait_condition(NAME, "ScalingActive", within=60)
    await wait_serving(workspace, 1)


async def test_an_external_scaler_owns_the_replicas(workspace: Workspace) -> None:
    """`kubectl scale` wins and stays, whatever Git applies again; then an HPA finds its target and moves it."""
    given = manifest(scaling={"mode": "External"})
    await apply_as_git(workspace, given)
    await wait_serving(workspace, 1)
    assert owners(await workspace.deployment(NAME), "spec", "replicas") == set()

    await workspace.kubectl("scale", f"llmdeployment/{NAME}", "--replicas=2")
    await wait_serving(workspace, 2)
    await apply_as_git(workspace, given)
    await workspace.kubectl("scale", f"llmdeployment/{NAME}", "--replicas=0")
    await wait_serving(workspace, 0)
    await apply_as_git(workspace, given)
    await holds("the scaler's number", lambda: _is_written(workspace, 0), 5)
    # An API server that names the writers of /scale names this one; 1.35 names none. Git and the operator it never is.
    assert owners(await workspace.deployment(NAME), "spec", "replicas") <= {"kubectl"}

    await workspace.kubectl("scale", f"llmdeployment/{NAME}", "--replicas=1")
    await workspace.apply(_hpa(least=2))

    async def resolved() -> bool:
        hpa = await workspace.get("HorizontalPodAutoscaler", NAME)
        return condition(hpa, "AbleToScale").get("status") == "True"

    await wait_for("the HPA to find its target", resolved, within=60)
    await wait_serving(workspace, 2)
    assert owners(await workspace.deployment(NAME), "spec", "replicas") <= {"kube-controller-manager"}
    await apply_as_git(workspace, given)
    await holds("the HPA's number", lambda: _is_written(workspace, 2), 5)


async def _is_written(workspace: Workspace, replicas: int) -> bool:
    return bool((await workspace.deployment(NAME))["spec"].get("replicas") == replicas)


def _hpa(least: int) -> Object:
    """It needs no metrics to keep its least number."""
    utilization = {"type": "Utilization", "averageUtilization": 50}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": NAME},
        "spec": {
            "scaleTargetRef": {"apiVersion": "octavo.dev/v1alpha1", "kind": "LLMDeployment", "name": NAME},
            "minReplicas": least,
            "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": utilization}}],
        },
    }


async def test_a_fixed_number_is_owned_by_git(workspace: Workspace) -> None:
    """No pods are needed to see that."""
    await apply_as_git(workspace, manifest(replicas=2, suspend=True))
    seen = await workspace.wait_condition(NAME, "Suspended", within=START_S)
    assert owners(seen, "spec", "replicas") == {GIT}
    assert seen["spec"]["replicas"] == 2
