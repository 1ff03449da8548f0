"""Every file of `examples/`, applied as it is: what this cluster can serve is served, of the rest the status says what it lacks.

The operator is told of a mirror, because no hub is reached from here; the manifests are not touched.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from e2e.cluster.settings import read_places
from e2e.hub import Hub
from e2e.kubernetes import Object, condition, wait_for
from e2e.manifests import START_S
from e2e.models import HUB_NAME, Claim
from e2e.operator_release import OperatorRelease
from e2e.streams import ask, wait_reachable
from e2e.workspace import Workspace

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("mirrored")]

EXAMPLES = read_places().checkout / "examples"
CAPITAL = "What is the capital of France?"
KEY = "0123456789abcdef"


@pytest.fixture(scope="module")
def mirrored(operator_release: OperatorRelease, hub_process: Hub) -> Iterator[None]:
    """Manifests that name no endpoint are served from our mirror."""
    with operator_release.put_back():
        operator_release.install({"runtime.hubEndpoint": hub_process.url})
        yield


async def apply(workspace: Workspace, example: str) -> None:
    await workspace.apply((EXAMPLES / example).read_text())


async def answers(workspace: Workspace, name: str, api_key: str = "") -> None:
    await workspace.wait_ready(name, START_S)
    url = await workspace.url(name)
    await wait_reachable(url)
    assert "Paris" in await ask(url, name, CAPITAL, api_key=api_key)


async def test_the_minimal_one_answers(workspace: Workspace) -> None:
    await apply(workspace, "01-minimal.yaml")
    await answers(workspace, "smollm")


async def test_two_gpus_are_not_asked_for_when_the_model_cannot_be_had(workspace: Workspace) -> None:
    """The mirror does not have it, nor is there a GPU: that is found out before a pod is made."""
    await workspace.kubectl("create", "secret", "generic", "hub", "--from-literal=HF_TOKEN=hf_example")
    await apply(workspace, "02-gpu-tensor-parallel.yaml")
    seen = await workspace.wait_condition("qwen3-32b", "Stalled", within=60)
    assert condition(seen, "Stalled")["reason"] == "ModelNotFound"
    assert await workspace.pods("qwen3-32b") == []


@asynccontextmanager
async def provisioned(workspace: Workspace, folder: Path) -> AsyncIterator[None]:
    """What a storage class does: a volume for the claim that the operator makes."""

    async def made() -> Object | None:
        return next(iter(await workspace.select("PersistentVolumeClaim")), None)

    found = await wait_for("the operator's claim", made)
    assert found is not None
    spec = found["spec"]
    claim = Claim(workspace, found["metadata"]["name"])
    await asyncio.to_thread(folder.chmod, 0o777)
    await claim.provision(folder, modes=tuple(spec["accessModes"]), size=spec["resources"]["requests"]["storage"])
    try:
        yield
    finally:
        await claim.remove()


async def test_the_shared_cache_is_filled_once_and_read_by_all(workspace: Workspace, tmp_path: Path) -> None:
    await apply(workspace, "03-shared-cache.yaml")
    async with provisioned(workspace, tmp_path):
        await answers(workspace, "smollm-shared")
        assert len(await workspace.pods("smollm-shared")) == 3
        assert len(await workspace.select("Job")) == 1


async def test_the_autoscaled_one_answers_with_its_least_replicas(workspace: Workspace) -> None:
    await apply(workspace, "04-autoscaling.yaml")
    await answers(workspace, "smollm-auto")
    assert (await workspace.deployment("smollm-auto"))["status"]["scaling"]["desired"] == 1


async def test_the_autoscaler_of_the_cluster_finds_its_target(workspace: Workspace) -> None:
    await apply(workspace, "05-external-hpa.yaml")
    await answers(workspace, "smollm-external")

    async def finds_it() -> bool:
        scaler = await workspace.get("HorizontalPodAutoscaler", "smollm-external")
        return condition(scaler, "AbleToScale").get("status") == "True"

    await wait_for("the HPA to look at its target", finds_it, 60)


async def test_callers_need_a_key_where_keys_are_asked_for(workspace: Workspace) -> None:
    await workspace.kubectl("create", "secret", "generic", "team-a", f"--from-literal=laptop={KEY}")
    await workspace.kubectl("label", "secret", "team-a", "octavo-keys=chat")
    await apply(workspace, "06-api-keys.yaml")
    await answers(workspace, "smollm-keys", KEY)
    with pytest.raises(aiohttp.ClientResponseError) as refused:
        await ask(await workspace.url("smollm-keys"), "smollm-keys", CAPITAL)
    assert refused.value.status == 401


@pytest.fixture
def next_commit(hub: Hub, tmp_path: Path) -> Iterator[str]:
    """A branch of the model with one more file in it."""
    for file in (hub.root / HUB_NAME / "main").iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "NOTES.md").write_text("another commit")
    hub.add(HUB_NAME, "next", tmp_path)
    yield "next"
    shutil.rmtree(hub.root / HUB_NAME / "next")


async def test_the_one_for_upgrades_answers_and_takes_another_revision(workspace: Workspace, next_commit: str) -> None:
    await apply(workspace, "07-upgrade.yaml")
    await answers(workspace, "smollm-upgrade")
    commit = (await workspace.deployment("smollm-upgrade"))["status"]["model"]["resolvedRevision"]
    text = (EXAMPLES / "07-upgrade.yaml").read_text()
    await workspace.apply(text.replace("revision: main", f"revision: {next_commit}"))
    await answers(workspace, "smollm-upgrade")
    assert (await workspace.deployment("smollm-upgrade"))["status"]["model"]["resolvedRevision"] != commit


async def test_the_one_with_every_field_says_what_is_missing_here(workspace: Workspace) -> None:
    """Its Secrets first: they are named before anything is asked of a hub with them."""
    await apply(workspace, "08-everything.yaml")
    seen = await workspace.wait_condition("everything", "Ready", "False", reason="ReferenceMissing", within=60)
    assert "Secret hub" in condition(seen, "Ready")["message"]
    assert await workspace.pods("everything") == []
