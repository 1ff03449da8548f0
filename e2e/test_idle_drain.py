"""A pod that is taken away without requests goes at once, with the drain settings that a user has who wrote none."""

import logging
import time

import pytest
from e2e.kubernetes import Object, wait_for
from e2e.manifests import START_S, small_model
from e2e.workspace import Workspace

from octavo_operator.names import DRAIN_REQUESTED

log = logging.getLogger(__name__)
pytestmark = pytest.mark.usefixtures("model_claim")

GOES_S = 30.0  # unrouted for 11 s, an answer after that, the process's end; the deadline for requests is 300 s later


async def test_an_idle_pod_that_is_scaled_away_drained_or_suspended_goes_at_once(workspace: Workspace) -> None:
    await workspace.apply(small_model("smollm", replicas=2, rollout={}))
    await workspace.wait_ready("smollm", START_S)
    took = {}

    begin = time.monotonic()
    await workspace.kubectl("scale", "llmd/smollm", "--replicas=1")
    await wait_for("one pod to be left", lambda: are_left(workspace, 1), GOES_S)
    took["scaled away"] = time.monotonic() - begin

    [pod] = await workspace.pods("smollm")
    name = pod["metadata"]["name"]
    await workspace.kubectl("annotate", "pod", name, f"{DRAIN_REQUESTED}=true")
    await wait_for(f"{name} to be gone", lambda: is_gone(workspace, name), START_S + GOES_S)
    await workspace.wait_ready("smollm", START_S)

    begin = time.monotonic()
    await workspace.patch("LLMDeployment", "smollm", {"spec": {"suspend": True}})
    await wait_for("no pod to be left", lambda: are_left(workspace, 0), GOES_S)
    took["suspended"] = time.monotonic() - begin
    log.info("gone after seconds: %s", {what: round(seconds, 1) for what, seconds in took.items()})


async def are_left(workspace: Workspace, number: int) -> bool:
    """Objects, those that terminate too: until then they hold their device."""
    return len(await all_pods(workspace)) == number


async def is_gone(workspace: Workspace, name: str) -> bool:
    return name not in {pod["metadata"]["name"] for pod in await all_pods(workspace)}


async def all_pods(workspace: Workspace) -> list[Object]:
    return await workspace.select("Pod", "octavo.dev/deployment=smollm,octavo.dev/component=server")
