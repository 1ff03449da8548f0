"""The story of a bad upgrade: a stable revision serves, a change that cannot work is applied, and taken back or mended.

Whatever the cause: streams on the stable revision never fail, status says the reason and the remedy, Ready is never true of
the bad spec, and the mended spec serves. The causes themselves are in `test_bad_upgrades.py`.
"""

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from e2e.kubernetes import NeverHappenedError, Object, condition, holds, wait_for
from e2e.streams import Chat, Tally, ask, open_streams
from e2e.workspace import Workspace

NAME = "smollm"
SERVED_NAME = "smollm"
WATCH_S = 0.5
LINGER_S = 4.0  # a pod that is to make way is marked within that
STABLE_SPEC: Object = {
    "model": {"uri": "pvc://model", "servedNames": [SERVED_NAME]},
    "engine": {"device": "cpu", "maxModelLen": 1024},
    "resources": {"cpu": "200m", "memory": "2Gi"},
    "rollout": {"drain": {"timeoutSeconds": 30, "unrouteSeconds": 1}},
}


@dataclass(frozen=True, slots=True)
class Cause:
    """One way in which an upgrade goes wrong."""

    reason: str
    remedy: str  # words that status must say: what to change
    change: Object  # merged into the stable spec
    upset: Mapping[str, Any] = field(default_factory=dict)  # what the hub does meanwhile
    fixed: Object | None = None  # merged into the stable spec instead; None: the change is taken back
    stalls: bool = True  # needs a person; else it is waited for
    makes_pods: bool = False  # the bad revision got pods: they must be gone after it was given up
    same_pod: bool = True  # the stable pod itself outlives it all
    within: float = 120.0  # seconds to the reason


def manifest(change: Object | None = None) -> Object:
    """The stable deployment, with a change merged into its spec."""
    spec = _merged(STABLE_SPEC, change or {})
    return {"apiVersion": "octavo.dev/v1alpha1", "kind": "LLMDeployment", "metadata": {"name": NAME}, "spec": spec}


async def serve_stable(workspace: Workspace) -> str:
    """Bring the stable spec about; returns its revision."""
    await workspace.apply(manifest())
    ready = await workspace.wait_ready(NAME, within=180)
    url = await workspace.url(NAME)

    async def answers() -> bool:  # kube-proxy may hear of a first pod a moment after everybody else
        with contextlib.suppress(aiohttp.ClientError):
            return bool(await ask(url, SERVED_NAME, "Hello", max_tokens=1))
        return False

    await wait_for("the Service to lead to the pod", answers, 30)
    return str(ready["status"]["revisions"]["target"]["hash"])


async def break_and_mend(workspace: Workspace, cause: Cause, heal: Callable[[], None] = lambda: None) -> None:
    """The whole story, from the stable spec to the mended one. `heal`: undoes what went wrong outside of the spec."""
    stable = await serve_stable(workspace)
    before = _serving_pods(await workspace.pods(NAME), stable)
    async with _streams(workspace) as tally:
        await workspace.apply(manifest(cause.change))
        async with _never_ready(workspace):
            await see_reason(workspace, cause)
            if cause.makes_pods:
                await see_given_up(workspace, cause, stable)
            await _see_stable_serve(workspace, tally)
            if cause.same_pod:
                await holds("the stable pod in service", lambda: _serves(workspace, stable, before), LINGER_S)
        heal()
        await workspace.apply(manifest(cause.fixed))
        await workspace.wait_ready(NAME, within=180)
    assert tally.failed == 0, tally
    if cause.same_pod and cause.fixed is None:
        assert await _serves(workspace, stable, before)


async def see_reason(workspace: Workspace, cause: Cause) -> Object:
    """Status names the cause and what to do about it."""
    kind = "Stalled" if cause.stalls else "Reconciling"
    seen = await workspace.wait_condition(NAME, kind, reason=cause.reason, within=cause.within)
    told = condition(seen, kind)["message"]
    assert cause.remedy in told, told
    assert seen["status"]["reason"] == cause.reason
    assert condition(seen, "Ready")["status"] == "False"
    assert condition(seen, "Available")["status"] == "True"
    if cause.stalls:
        failure = seen["status"]["lastFailure"]
        assert failure["reason"] == cause.reason
        assert cause.remedy in f"{failure['message']} {failure['remedy']}", failure
        assert seen["status"]["phase"] == "Degraded"
    return seen


async def see_given_up(workspace: Workspace, cause: Cause, stable: str, within: float = 240) -> None:
    """The bad revision's pods are gone for good, and status still says why."""

    async def rolled_back() -> bool:
        status = (await workspace.deployment(NAME)).get("status") or {}
        back = (status.get("rollout") or {}).get("lastRollback") or {}
        others = [pod for pod in await workspace.select("Pod") if _revision(pod) not in ("", stable)]
        bad_hash = back.get("from")
        return back.get("to") == stable and bad_hash not in (None, stable) and not others

    try:
        await wait_for(f"a rollback to {stable}", rolled_back, within)
    except NeverHappenedError as error:
        raise NeverHappenedError(f"{error}\n{await workspace.story(NAME)}") from None
    seen = await see_reason(workspace, cause)
    assert seen["status"]["rollout"]["lastRollback"]["reason"] == cause.reason


@asynccontextmanager
async def _never_ready(workspace: Workspace) -> AsyncIterator[None]:
    """Inside the block Ready is not once true of the spec as it is now."""
    generation = (await workspace.deployment(NAME))["metadata"]["generation"]
    seen: list[Object] = []

    async def watch() -> None:
        while True:
            ready = condition(await workspace.deployment(NAME), "Ready")
            if ready.get("observedGeneration") == generation and ready.get("status") == "True":
                seen.append(ready)
            await asyncio.sleep(WATCH_S)

    watching = asyncio.create_task(watch())
    try:
        yield
        assert not watching.done(), watching.exception()
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    assert not seen, f"Ready while the spec cannot work: {seen[0]}"


@asynccontextmanager
async def _streams(workspace: Workspace) -> AsyncIterator[Tally]:
    """One short stream after the other, from before the change until after the mending."""
    chat = Chat(await workspace.url(NAME), SERVED_NAME, prompt="Hello", max_tokens=4)
    async with open_streams(chat, 1) as tally:
        yield tally


async def _serves(workspace: Workspace, revision: str, pods: set[str]) -> bool:
    return _serving_pods(await workspace.pods(NAME), revision) == pods


async def _see_stable_serve(workspace: Workspace, tally: Tally) -> None:
    """Answers come still, not only did before."""
    done = tally.done

    async def more() -> bool:
        return tally.done >= done + 2

    try:
        await wait_for("the stable revision to answer", more, 60)
    except NeverHappenedError as error:
        raise NeverHappenedError(f"{error}\n{tally}\n{await workspace.story(NAME)}") from None


def _serving_pods(pods: list[Object], revision: str) -> set[str]:
    """uids of the revision's pods that requests reach."""
    routed = [pod for pod in pods if pod["metadata"]["labels"].get("octavo.dev/routed") == "true"]
    return {str(pod["metadata"]["uid"]) for pod in routed if _revision(pod) == revision}


def _revision(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get("octavo.dev/revision", ""))


def _merged(base: Object, change: Object) -> Object:
    merged = copy.deepcopy(base)
    for key, value in change.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both else copy.deepcopy(value)
    return merged
