"""Deleting an LLMDeployment: nothing of it stays and nothing hangs, at whatever moment, whether the operator runs or not."""

import asyncio
import time

import pytest
from e2e.hub import Hub
from e2e.inventory import inventory
from e2e.kubernetes import Kubernetes, Object, condition, wait_for
from e2e.manifests import START_S, hub_model, small_model
from e2e.operator_release import NAMESPACE, OperatorRelease
from e2e.streams import ask, wait_reachable
from e2e.workspace import Workspace

DELETE_S = 10  # for `kubectl delete` to return: no finalizer holds the object
GONE_S = 90  # for the last pod; its grace period is 46 s here


@pytest.mark.core
@pytest.mark.usefixtures("model_claim")
async def test_nothing_stays_of_a_deleted_model(workspace: Workspace) -> None:
    before = await inventory(workspace)
    await workspace.apply(small_model("smollm", replicas=2))
    await workspace.wait_ready("smollm", START_S)
    made = await inventory(workspace) - before
    kinds = {each.partition("/")[0] for each in made}
    assert {"LLMDeployment", "PodDisruptionBudget", "NetworkPolicy", "ControllerRevision", "Secret", "Pod"} <= kinds
    assert (await workspace.deployment("smollm"))["metadata"].get("finalizers") is None
    await delete_at_once(workspace, "smollm")
    await only(workspace, before)


@pytest.mark.usefixtures("model_claim")
async def test_a_model_applied_again_at_once_is_served_again(workspace: Workspace) -> None:
    """Children of the deleted one still go while those of the new one, of the same names, come."""
    manifest = small_model("smollm")
    await workspace.apply(manifest)
    await workspace.wait_ready("smollm", START_S)
    await delete_at_once(workspace, "smollm")
    await workspace.apply(manifest)
    await workspace.wait_ready("smollm", START_S)
    url = await workspace.url("smollm")
    await wait_reachable(url)
    assert "Paris" in await ask(url, "smollm", "What is the capital of France?")
    uid = (await workspace.deployment("smollm"))["metadata"]["uid"]

    async def all_of_the_new_one() -> bool:
        owned = [
            reference["uid"]
            for kind in ("Service", "Secret", "Deployment", "ControllerRevision", "NetworkPolicy", "ServiceAccount")
            for child in await workspace.select(kind, "octavo.dev/deployment=smollm")
            for reference in child["metadata"]["ownerReferences"]
        ]
        return set(owned) == {uid}

    await wait_for("the old one's children to be gone", all_of_the_new_one, GONE_S)
    await workspace.wait_ready("smollm", START_S)


@pytest.mark.parametrize("moment", ["downloading", "image missing", "no room", "suspended"])
@pytest.mark.usefixtures("weights_claim")
async def test_a_model_can_be_deleted_at_any_moment(workspace: Workspace, hub: Hub, moment: str) -> None:
    before = await inventory(workspace)
    hub.behave(bytes_per_second=200_000)
    await workspace.apply(small_model("smollm", model=hub_model(hub.url), **UNFINISHED[moment]))
    await wait_for(f"the model to be {moment}", lambda: has_reason(workspace, REASONS[moment]), 60)
    await delete_at_once(workspace, "smollm")
    await only(workspace, before)


@pytest.mark.alone
@pytest.mark.usefixtures("model_claim")
async def test_a_model_can_be_deleted_while_no_operator_runs(
    workspace: Workspace, operator_release: OperatorRelease
) -> None:
    before = await inventory(workspace)
    await workspace.apply(small_model("smollm", replicas=2))
    await workspace.wait_ready("smollm", START_S)
    async with operator_release.away():
        await delete_at_once(workspace, "smollm")
        await only(workspace, before)


@pytest.mark.alone
@pytest.mark.usefixtures("model_claim")
async def test_the_chart_can_be_removed_before_its_models(
    workspace: Workspace, operator_release: OperatorRelease
) -> None:
    """With the kind kept they go on serving, and can be deleted later; the next install finds nothing in its way."""
    before = await inventory(workspace)
    own = await system_inventory(workspace.kube)
    await workspace.apply(small_model("smollm"))
    await workspace.wait_ready("smollm", START_S)
    url = await workspace.url("smollm")
    with operator_release.put_back():
        operator_release.install({"crds.keep": True})
        operator_release.uninstall()
        await wait_for("the chart's objects to be gone", lambda: is_empty_of_ours(workspace.kube), GONE_S)
        assert "Paris" in await ask(url, "smollm", "What is the capital of France?")
        await delete_at_once(workspace, "smollm")
        await only(workspace, before)
    await wait_for("the same objects as before", lambda: has_inventory(workspace.kube, own), GONE_S)


@pytest.mark.alone
@pytest.mark.usefixtures("model_claim")
async def test_the_models_go_with_the_chart_where_the_kind_is_not_kept(
    workspace: Workspace, operator_release: OperatorRelease
) -> None:
    await workspace.apply(small_model("smollm", replicas=2))
    await workspace.wait_ready("smollm", START_S)
    started = time.monotonic()
    with operator_release.put_back():
        operator_release.uninstall()
        assert time.monotonic() - started < GONE_S

        async def empty() -> bool:
            # The kind is gone, and with it kubectl's way to list it: what is left is asked for by name.
            return not await workspace.select("Pod") and not await workspace.select("ControllerRevision")

        await wait_for("the model's pods to be gone", empty, GONE_S)
        await wait_for("the chart's objects to be gone", lambda: is_empty_of_ours(workspace.kube), GONE_S)
        assert await workspace.kube.get("CustomResourceDefinition", "llmdeployments.octavo.dev") is None


UNFINISHED: dict[str, Object] = {
    "downloading": {"cache": {"mode": "SharedPVC", "sharedPVC": {"claimName": "weights"}}},
    "image missing": {"engine": {"device": "cpu", "maxModelLen": 1024, "image": "octavo.local/nobody-built-this:1"}},
    "no room": {"resources": {"cpu": "900", "memory": "2Gi"}},
    "suspended": {"suspend": True},
}
REASONS = {
    "downloading": {"Downloading"},
    "image missing": {"ImagePullFailed", "ImagePulling"},
    "no room": {"WaitingForNode", "ImpossibleRequest"},
    "suspended": {"Suspended"},
}


async def system_inventory(kube: Kubernetes) -> frozenset[str]:
    """What the chart has in its namespace, by lasting names; Helm's own records are numbered by each change of a release."""
    found = await inventory(Workspace(kube, NAMESPACE))
    lasting = ("Lease", "Secret", "Deployment", "ServiceAccount")
    return frozenset(each for each in found if each.split("/")[0] in lasting and "/sh.helm.release." not in each)


async def has_inventory(kube: Kubernetes, expected: frozenset[str]) -> bool:
    return await system_inventory(kube) == expected


async def is_empty_of_ours(kube: Kubernetes) -> bool:
    """Nothing is left in the operator's namespace, its Lease and its keys included."""
    leases = await kube.select("Lease", NAMESPACE)
    return not leases and not await inventory(Workspace(kube, NAMESPACE))


async def has_reason(workspace: Workspace, reasons: set[str]) -> bool:
    seen = await workspace.deployment("smollm")
    return any(condition(seen, kind).get("reason") in reasons for kind in ("Ready", "Stalled", "Reconciling"))


async def delete_at_once(workspace: Workspace, name: str) -> None:
    """As a person does it: kubectl waits until the object is gone."""
    started = time.monotonic()
    await workspace.kubectl("delete", "llmdeployment", name, f"--timeout={DELETE_S}s")
    assert time.monotonic() - started < DELETE_S


async def only(workspace: Workspace, expected: frozenset[str]) -> None:
    """Until the namespace holds these objects and no others."""
    left: frozenset[str] = frozenset()

    async def probe() -> bool:
        nonlocal left
        left = await inventory(workspace)
        await asyncio.sleep(0.5)
        return left == expected

    try:
        await wait_for("what belongs to the model to be gone", probe, GONE_S)
    except AssertionError as error:
        raise AssertionError(f"{error}; left: {sorted(left - expected)}; missing: {sorted(expected - left)}") from None
