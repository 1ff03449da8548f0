"""Upgrades under load: streams are open all the time, one line of the manifest changes, and no client notices.

Pods ask for one device each of a kind that only this test's node has, so that room for one more pod, or none, is certain.
"""

import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from e2e.cluster.faults import Faults
from e2e.kubernetes import Object, argument, wait_for
from e2e.streams import Chat, Tally, open_streams
from e2e.witness import Witness, is_routed, is_serving, watch_pods
from e2e.workspace import Workspace

log = logging.getLogger(__name__)
pytestmark = pytest.mark.usefixtures("model_claim")

NAME = "smollm"
NODE = "node1"
REPLICAS = 2
START_S = 240  # until two pods serve, on a machine that does much else
UPGRADE_S = 300  # two pods start one after the other, and two drain
FIRST, NEXT = 32, 40  # engine.maxNumSeqs, the line that changes


@dataclass(frozen=True, slots=True)
class Devices:
    """Fake devices of the test's own kind on one node."""

    faults: Faults
    resource: str

    def provide(self, count: int) -> None:
        self.faults.set_gpus(NODE, count, self.resource)


@pytest.fixture
def devices(faults: Faults) -> Iterator[Devices]:
    made = Devices(faults, f"e2e-{secrets.token_hex(3)}.octavo.dev/gpu")
    yield made
    faults.remove_gpus(NODE, made.resource)


def manifest(resource: str, max_num_seqs: int) -> str:
    """Upgrades change the last value only."""
    asked = {"requests": {resource: 1}, "limits": {resource: 1}}
    spec: Object = {
        "model": {"uri": "pvc://model"},
        "replicas": REPLICAS,
        "resources": {"memory": "1500Mi"},
        "rollout": {"drain": {"unrouteSeconds": 2, "timeoutSeconds": 120}},
        "pod": {"patch": {"spec": {"containers": [{"name": "octavo", "resources": asked}]}}},
        "engine": {"device": "cpu", "maxModelLen": 1024, "maxNumSeqs": max_num_seqs},
    }
    metadata = {"name": NAME}
    return json.dumps(
        {"apiVersion": "octavo.dev/v1alpha1", "kind": "LLMDeployment", "metadata": metadata, "spec": spec}
    )


@dataclass(slots=True)
class Story:
    """One LLMDeployment under load: what clients saw, and what became of its pods."""

    workspace: Workspace
    resource: str
    devices: int
    witness: Witness
    tally: Tally
    began: float

    async def apply(self, max_num_seqs: int) -> None:
        await self.workspace.apply(manifest(self.resource, max_num_seqs))

    async def settle(self) -> Object:
        """The LLMDeployment when only pods of the applied spec are left, and all of them serve."""
        settled = await self.workspace.wait_ready(NAME, UPGRADE_S)
        pods = await self.workspace.pods(NAME)
        target = settled["status"]["revisions"]["target"]["hash"]
        assert [pod["metadata"]["labels"]["octavo.dev/revision"] for pod in pods] == [target] * REPLICAS
        return settled

    def check(self, at_least: int) -> None:
        """Nothing was lost so far, and devices were never over-asked."""
        told = self.witness.story(self.began)
        assert self.tally.failed == 0, f"{self.tally}\n{told}"
        assert self.tally.done > 0
        assert self.witness.fewest_serving(self.began) >= at_least, told
        assert self.witness.most_existing(self.began) <= self.devices, told
        assert not self.witness.homeless(self.began), told


@asynccontextmanager
async def under_load(
    workspace: Workspace, devices: Devices, count: int, streams: int, max_tokens: int
) -> AsyncIterator[Story]:
    """Serving `REPLICAS` pods of the first revision, on a node with `count` devices."""
    devices.provide(count)
    await workspace.apply(manifest(devices.resource, FIRST))
    await workspace.wait_ready(NAME, START_S)
    chat = Chat(await workspace.url(NAME), NAME, "Count to ten.", max_tokens)
    async with watch_pods(workspace, NAME) as witness, open_streams(chat, streams) as tally:
        await wait_for("streams to be served", _have_called(tally, streams), 120)
        yield Story(workspace, devices.resource, count, witness, tally, time.monotonic())


@pytest.mark.core
async def test_an_upgrade_with_room_for_one_more_pod_loses_no_stream(workspace: Workspace, devices: Devices) -> None:
    async with under_load(workspace, devices, REPLICAS + 1, streams=12, max_tokens=16) as story:
        await story.apply(NEXT)
        settled = await story.settle()
    assert settled["status"]["rollout"]["strategy"] == "Surge"
    story.check(at_least=REPLICAS)
    assert story.witness.most_existing(story.began) == REPLICAS + 1


@pytest.mark.parametrize(
    ("spare", "strategy", "at_least"), [(1, "Surge", REPLICAS), (0, "InPlace", REPLICAS - 1)], ids=["spare", "full"]
)
async def test_three_upgrades_under_64_streams_lose_none(
    workspace: Workspace, devices: Devices, spare: int, strategy: str, at_least: int
) -> None:
    async with under_load(workspace, devices, REPLICAS + spare, streams=64, max_tokens=16) as story:
        for max_num_seqs in (NEXT, NEXT + 8, NEXT + 16):
            applied = time.monotonic()
            await story.apply(max_num_seqs)
            settled = await story.settle()
            log.info("upgrade to %d sequences: %.1f s", max_num_seqs, time.monotonic() - applied)
            assert settled["status"]["rollout"]["strategy"] == strategy
    log.info("%s", story.tally)
    story.check(at_least)


# What is seen of an upgrade when it is taken back, in about the order in which it comes with room for one more pod.
MOMENTS: Mapping[str, Callable[[list[Object]], bool]] = {
    "at once": lambda _: True,
    "a new pod starts": lambda pods: any(map(_is_new, pods)),
    "an old pod drains": lambda pods: any(not _is_new(pod) and not is_routed(pod) for pod in pods),
    "an old pod leaves": lambda pods: any(not _is_new(pod) and "deletionTimestamp" in pod["metadata"] for pod in pods),
    "a new pod serves": lambda pods: any(_is_new(pod) and is_serving(pod) for pod in pods),
}


@pytest.mark.parametrize(("spare", "at_least"), [(1, REPLICAS), (0, REPLICAS - 1)], ids=["spare", "full"])
async def test_an_upgrade_taken_back_at_any_moment_loses_no_stream(
    workspace: Workspace, devices: Devices, spare: int, at_least: int
) -> None:
    """And replaces no pod of the first revision that still serves."""
    async with under_load(workspace, devices, REPLICAS + spare, streams=8, max_tokens=16) as story:
        for moment, has_come in MOMENTS.items():
            await story.apply(NEXT)
            await wait_for(moment, _pods_are(story.witness, has_come), UPGRADE_S)
            kept = {name for name, pod in story.witness.pods.items() if is_serving(pod) and not _is_new(pod)}
            taken_back = time.monotonic()
            await story.apply(FIRST)
            await story.settle()
            assert kept <= story.witness.pods.keys(), story.witness.story(taken_back)
            log.info("taken back when %s: %.1f s", moment, time.monotonic() - taken_back)
            story.check(at_least)


def _is_new(pod: Object) -> bool:
    return argument(pod, "--max-num-seqs") != str(FIRST)


def _pods_are(witness: Witness, like: Callable[[list[Object]], bool]) -> Callable[[], Awaitable[bool]]:
    async def probe() -> bool:
        return like(list(witness.pods.values()))

    return probe


def _have_called(tally: Tally, calls: int) -> Callable[[], Awaitable[bool]]:
    async def probe() -> bool:
        return tally.done + tally.failed >= calls

    return probe
