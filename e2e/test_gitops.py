"""The story of Git: Argo CD, Flux or a person apply the same thing again and again, in every way, and nothing moves.

`children.py` compares resourceVersions, so "nothing" is meant: no write by anybody to any child.
"""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.argo_health import History, watched
from e2e.children import Children, changed, children_of, owners, quiet_children, written_by
from e2e.kubernetes import Kubernetes, Object, RefusedError, wait_for
from e2e.operator_release import OperatorRelease
from e2e.settings import Settings
from e2e.streams import Chat, open_streams
from e2e.workspace import Workspace, make_workspace

pytestmark = pytest.mark.usefixtures("model_claim")

RECORDED = Path(__file__).parents[1] / "tests" / "operator" / "status" / "recorded"
NAME = "smollm"
OPERATOR = "octavo-operator"
LONGER_THAN_A_PASS_S = 3.0
START_S = 180.0  # of a pod, on a small machine that does other things too


def manifest(**spec: Any) -> Object:
    """As it lies in Git, with the marks that Argo CD puts on it."""
    rollout = {"drain": {"timeoutSeconds": 30, "unrouteSeconds": 1}}
    engine = {"device": "cpu", "maxModelLen": 1024, **spec.pop("engine", {})}
    return {
        "apiVersion": "octavo.dev/v1alpha1",
        "kind": "LLMDeployment",
        "metadata": {
            "name": NAME,
            "labels": {"app.kubernetes.io/instance": "models"},
            "annotations": {"argocd.argoproj.io/tracking-id": "models:octavo.dev/LLMDeployment:models/smollm"},
        },
        "spec": {
            "model": {"uri": "pvc://model"},
            "engine": engine,
            "resources": {"cpu": "200m", "memory": "1500Mi"},
            "rollout": rollout,
            **spec,
        },
    }


async def apply_as(workspace: Workspace, manager: str, given: Object) -> None:
    """As Argo CD and Flux do it: server-side, by their own name, with force."""
    options = ("--server-side", "--force-conflicts", f"--field-manager={manager}", "--filename=-")
    await workspace.kubectl("apply", *options, stdin=yaml.safe_dump(given))


async def diff_as(workspace: Workspace, manager: str, given: Object) -> str:
    """What `kubectl diff` shows; empty when there is nothing to sync."""
    options = ("--server-side", "--force-conflicts", f"--field-manager={manager}", "--filename=-")
    try:
        return await workspace.kubectl("diff", *options, stdin=yaml.safe_dump(given))
    except RefusedError as error:
        return f"exit {error.status}: {error}"


async def served(workspace: Workspace, given: Object) -> Children:
    """Applied as Argo CD does it, ready, and quiet."""
    await apply_as(workspace, "argocd-controller", given)
    await workspace.wait_ready(NAME, START_S)
    return await quiet_children(workspace, NAME)


async def still(workspace: Workspace, before: Children) -> None:
    """Nothing was written to any child, also not a little later."""
    time_up = time.monotonic() + LONGER_THAN_A_PASS_S

    async def over() -> bool:
        after = await children_of(workspace, NAME)
        assert after == before, "\n".join(changed(before, after))
        return time.monotonic() > time_up

    await wait_for("a pass of the operator", over)


@pytest.mark.core
async def test_applying_the_same_again_in_any_way_changes_no_child(workspace: Workspace) -> None:
    given = manifest()
    before = await served(workspace, given)
    wanted = await workspace.deployment(NAME)

    for manager in ("flux-controller", "argocd-controller") * 5:
        await apply_as(workspace, manager, given)
    await workspace.apply(given)
    await still(workspace, before)

    await workspace.kubectl("replace", "--filename=-", stdin=yaml.safe_dump(given))
    await still(workspace, before)

    await workspace.patch("LLMDeployment", NAME, {"metadata": {"annotations": None, "labels": None}})
    await still(workspace, before)

    await apply_as(workspace, "argocd-controller", given)
    await still(workspace, before)
    assert await diff_as(workspace, "argocd-controller", given) == ""
    seen = await workspace.deployment(NAME)
    assert seen["spec"] == wanted["spec"]
    assert seen["metadata"]["generation"] == 1, "the spec was written"
    assert seen["status"] == wanted["status"]


async def test_the_operator_writes_only_the_status_and_keeps_marks_of_argo_cd_off_the_children(
    workspace: Workspace,
) -> None:
    """Argo CD would prune what carries its label and is not in Git."""
    given = manifest()
    await served(workspace, given)
    seen = await workspace.deployment(NAME)
    assert written_by(seen, OPERATOR) == {"status"}
    assert owners(seen, "spec") == {"argocd-controller"}
    assert seen["metadata"]["annotations"] == given["metadata"]["annotations"]
    assert seen["metadata"]["labels"] == given["metadata"]["labels"]
    assert "finalizers" not in seen["metadata"]
    for kind in ("Deployment", "Pod", "Service", "ServiceAccount", "NetworkPolicy", "ControllerRevision"):
        children = await workspace.select(kind, f"octavo.dev/deployment={NAME}")
        assert children, kind
        for own in (child["metadata"] for child in children):
            assert own["labels"]["app.kubernetes.io/instance"] == NAME, (kind, own["name"])
            assert not any(key.startswith("argocd.") for key in own.get("annotations", {})), (kind, own["name"])
            assert own["ownerReferences"], (kind, own["name"])


async def test_a_child_that_somebody_changed_is_put_back_without_a_restart(workspace: Workspace) -> None:
    """Annotations stripped, a field changed, a whole object deleted: the pods notice none of it."""
    before = await served(workspace, manifest())
    pods = {child: seen[0] for child, seen in before.items() if child.startswith("Pod ")}
    revision = next(each.split()[1] for each in before if each.startswith("Deployment "))

    await workspace.patch("Deployment", revision, {"metadata": {"annotations": None}})
    await workspace.patch("Service", NAME, {"metadata": {"annotations": None}, "spec": {"selector": {"x": "y"}}})
    await workspace.delete("NetworkPolicy", NAME)

    async def mended() -> bool:
        service, policy = await workspace.get("Service", NAME), await workspace.get("NetworkPolicy", NAME)
        deployment = await workspace.get("Deployment", revision)
        marked = deployment is not None and "octavo.dev/applied" in deployment["metadata"].get("annotations", {})
        routed = service is not None and service["spec"]["selector"].get("octavo.dev/deployment") == NAME
        return marked and routed and policy is not None

    await wait_for("the children to be as they were", mended, within=30)
    after = await quiet_children(workspace, NAME)
    assert {child: seen[0] for child, seen in after.items() if child.startswith("Pod ")} == pods
    assert all(status["restartCount"] == 0 for pod in await workspace.pods(NAME) for status in _containers(pod))


async def test_what_argo_cd_says_is_right_in_every_state(workspace: Workspace, settings: Settings) -> None:
    """Progressing, Healthy, Degraded, Suspended; and never a wrong one on the way."""
    recorded: dict[str, History] = {}

    async with watched(workspace, NAME) as history:
        await apply_as(workspace, "argocd-controller", manifest())
        await workspace.wait_ready(NAME, START_S)
    assert history.healths == ["Progressing", "Healthy"], history
    recorded["starting"] = history

    async with watched(workspace, NAME) as history:
        await apply_as(workspace, "argocd-controller", manifest(engine={"blockSize": 32}))
        await workspace.wait_ready(NAME, START_S)
    assert history.healths[-2:] == ["Progressing", "Healthy"], history
    assert "Degraded" not in history.healths, history
    recorded["upgrade"] = history

    async with watched(workspace, NAME) as history:
        bad = manifest(resources={"cpu": "200m", "memory": "900Gi"}, engine={"blockSize": 32})
        await apply_as(workspace, "argocd-controller", bad)
        await workspace.wait_stalled(NAME, "ImpossibleRequest")
    assert history.healths[-1] == "Degraded", history
    assert history.last("Degraded").resource["status"]["readyReplicas"] == 1  # what served before goes on
    recorded["refused"] = history

    async with watched(workspace, NAME) as history:
        await apply_as(workspace, "argocd-controller", manifest(engine={"blockSize": 32}))
        await workspace.wait_ready(NAME, START_S)
    assert history.healths[-1] == "Healthy", history

    async with watched(workspace, NAME) as history:
        await apply_as(workspace, "argocd-controller", manifest(suspend=True))
        await workspace.wait_condition(NAME, "Suspended")
    assert history.healths[-1] == "Suspended", history
    assert "Degraded" not in history.healths, history
    recorded["suspended"] = history

    if settings.record:
        _keep(recorded)


def _keep(histories: dict[str, History]) -> None:
    """One file for each different health of each phase: the input of the script's unit test."""
    RECORDED.mkdir(exist_ok=True)
    for phase, history in histories.items():
        for health in dict.fromkeys(history.healths):
            history.last(health).keep(RECORDED / f"{phase}_{health.lower()}.json")


def _containers(pod: Object) -> list[Object]:
    found: list[Object] = pod["status"].get("containerStatuses", [])
    return found


@pytest.mark.alone
async def test_an_upgrade_of_the_chart_changes_no_child_and_cuts_no_stream(
    workspace: Workspace, kube: Kubernetes, operator_release: OperatorRelease
) -> None:
    before = await served(workspace, manifest())
    chat = Chat(await workspace.url(NAME), NAME, max_tokens=16)
    with operator_release.put_back():
        async with open_streams(chat, 2) as tally:
            newer = {"log.level": "info", "podAnnotations": {"octavo.dev/e2e": "upgraded"}}
            await asyncio.to_thread(operator_release.install, newer)
            await _the_new_operator_works(kube)
            after = await children_of(workspace, NAME)
    assert after == before, "\n".join(changed(before, after))
    assert tally.failed == 0, tally
    assert await diff_as(workspace, "argocd-controller", manifest()) == ""


async def _the_new_operator_works(kube: Kubernetes) -> None:
    """It has looked at something that came after all others, so at all others too."""
    probe = await make_workspace(kube, "probe")
    try:
        await probe.apply(manifest(suspend=True))
        await probe.wait_condition(NAME, "Suspended")
    finally:
        await kube.delete("Namespace", probe.name)
