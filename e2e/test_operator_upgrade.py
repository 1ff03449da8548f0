"""A newer operator would make pods otherwise: what serves goes on as it was made, is scaled so, and changes with the spec."""

import asyncio

import pytest
from e2e.children import changed, children_of, quiet_children
from e2e.kubernetes import Object, condition, holds, serving_container
from e2e.manifests import START_S, small_model
from e2e.operator_release import RUNTIME_CPU, OperatorRelease
from e2e.streams import Chat, open_streams, wait_reachable
from e2e.workspace import Workspace

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("model_claim")]

NAME = "smollm"
NEWER = {"runtime.cpu": "300m", "runtime.memory": "1100Mi", "runtime.fsGroup": 2000}


def manifest(replicas: int, max_num_seqs: int = 32) -> Object:
    """Leaves to the operator what its defaults decide."""
    engine = {"device": "cpu", "maxModelLen": 1024, "maxNumSeqs": max_num_seqs}
    return small_model(NAME, replicas=replicas, engine=engine, resources={})


async def test_an_operator_with_other_defaults_restarts_no_pod(
    workspace: Workspace, operator_release: OperatorRelease
) -> None:
    await workspace.apply(manifest(1))
    await workspace.wait_ready(NAME, START_S)
    before = await quiet_children(workspace, NAME)
    url = await workspace.url(NAME)
    await wait_reachable(url)
    with operator_release.put_back():
        async with open_streams(Chat(url, NAME, max_tokens=16), 2) as tally:
            await asyncio.to_thread(operator_release.install, NEWER)
            seen = await workspace.wait_condition(NAME, "UpgradeAvailable", within=60)
            assert condition(seen, "Ready")["status"] == "True"

            async def untouched() -> bool:
                after = await children_of(workspace, NAME)
                assert after == before, "\n".join(changed(before, after))
                return True

            await holds("every child as it was", untouched, 10)

            await workspace.apply(manifest(2))
            await workspace.wait_ready(NAME, START_S)
            assert await cpus(workspace) == [RUNTIME_CPU, RUNTIME_CPU], "the second pod is made as the first was"

            await workspace.apply(manifest(2, max_num_seqs=40))
            after = await workspace.wait_ready(NAME, START_S)
            assert await cpus(workspace) == [NEWER["runtime.cpu"]] * 2
            assert condition(after, "UpgradeAvailable") == {}
    assert tally.failed == 0, str(tally)


async def cpus(workspace: Workspace) -> list[str]:
    """What each serving pod asks for."""
    containers = map(serving_container, await workspace.pods(NAME))
    return [str(each["resources"]["requests"]["cpu"]) for each in containers]
