"""`Witness`: every state that the pods of one LLMDeployment were in, from a watch, which misses none as a poll would.

Says how few pods served, how many existed, and which found no node, since a moment that the test chooses.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from e2e.kubernetes import Object, wait_for
from e2e.workspace import Workspace

PAUSE_S = 0.5  # before it watches again, when the API server ended the watch


@dataclass(frozen=True, slots=True)
class Seen:
    """All pods at one change of one of them."""

    at: float  # monotonic
    serving: int  # ready, routed, not on their way out
    existing: int  # objects that are not finished: each holds its devices until it is gone
    homeless: tuple[str, ...]  # pods that the scheduler found no node for
    text: str  # the pods, for reading


@dataclass(slots=True)
class Witness:
    """What was seen so far."""

    history: list[Seen] = field(default_factory=list)
    pods: dict[str, Object] = field(default_factory=dict)

    def note(self) -> None:
        """The pods as they are now."""
        pods = [self.pods[name] for name in sorted(self.pods) if not _is_finished(self.pods[name])]
        seen = Seen(
            at=time.monotonic(),
            serving=sum(map(is_serving, pods)),
            existing=len(pods),
            homeless=tuple(pod["metadata"]["name"] for pod in pods if _is_homeless(pod)),
            text=f"{time.strftime('%H:%M:%S')} " + ", ".join(map(_word, pods)),
        )
        if not self.history or self.history[-1].text[9:] != seen.text[9:]:
            self.history.append(seen)

    async def has_looked(self) -> bool:
        return bool(self.history)

    def since(self, moment: float) -> list[Seen]:
        """From the state in which that moment found them."""
        earlier = [seen for seen in self.history if seen.at < moment]
        return earlier[-1:] + [seen for seen in self.history if seen.at >= moment]

    def fewest_serving(self, moment: float) -> int:
        return min(seen.serving for seen in self.since(moment))

    def most_existing(self, moment: float) -> int:
        return max(seen.existing for seen in self.since(moment))

    def homeless(self, moment: float) -> set[str]:
        return {name for seen in self.since(moment) for name in seen.homeless}

    def story(self, moment: float) -> str:
        """All states, one a line."""
        return "\n".join(f"{seen.text}: {seen.serving} serve" for seen in self.since(moment))


@asynccontextmanager
async def watch_pods(workspace: Workspace, name: str) -> AsyncIterator[Witness]:
    """The witness sees all that happens to the LLMDeployment's serving pods inside the block."""
    witness = Witness()
    task = asyncio.create_task(_keep_watching(workspace, name, witness))
    try:
        await wait_for(f"a first look at the pods of {name}", witness.has_looked)
        yield witness
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def is_serving(pod: Object) -> bool:
    """The Service sends requests to it."""
    conditions = pod.get("status", {}).get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and is_routed(pod) and "deletionTimestamp" not in pod["metadata"]


def is_routed(pod: Object) -> bool:
    return bool(pod["metadata"]["labels"].get("octavo.dev/routed") == "true")


async def _keep_watching(workspace: Workspace, name: str, witness: Witness) -> None:
    while True:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            await _watch(workspace, name, witness)
        await asyncio.sleep(PAUSE_S)


async def _watch(workspace: Workspace, name: str, witness: Witness) -> None:
    """What is there now, then each change of it."""
    path = f"/api/v1/namespaces/{workspace.name}/pods"
    query = {"labelSelector": f"octavo.dev/deployment={name},octavo.dev/component=server"}
    session = workspace.kube.session
    async with session.get(path, params=query) as answer:
        listed = await answer.json()
    witness.pods = {pod["metadata"]["name"]: pod for pod in listed["items"]}
    witness.note()
    query |= {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
    async with session.get(path, params=query, timeout=aiohttp.ClientTimeout(total=None)) as answer:
        async for line in answer.content:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            pod = event["object"]
            if event["type"] == "DELETED":
                witness.pods.pop(pod["metadata"]["name"], None)
            else:
                witness.pods[pod["metadata"]["name"]] = pod
            witness.note()


def _is_finished(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _is_homeless(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


def _word(pod: Object) -> str:
    """`a1b2c3d4e5/x7k2p Running`, and what is special about it."""
    metadata = pod["metadata"]
    marks = [
        word
        for word, holds in (
            ("serving", is_serving(pod)),
            ("unrouted", not is_routed(pod)),
            ("leaving", "deletionTimestamp" in metadata),
            ("homeless", _is_homeless(pod)),
        )
        if holds
    ]
    name = f"{metadata['labels']['octavo.dev/revision']}/{metadata['name'].rpartition('-')[2]}"
    return " ".join([name, pod.get("status", {}).get("phase", ""), *marks])
