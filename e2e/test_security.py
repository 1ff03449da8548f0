"""Pods that a strict platform admits, keys that come and go without a restart, and secrets that show up nowhere."""

import asyncio
import base64
import json
import random
import secrets
from typing import Any

import aiohttp
import pytest
from e2e.hub import Hub
from e2e.kubernetes import Kubernetes, NeverHappenedError, Object, RefusedError, condition, wait_for
from e2e.manifests import START_S, hub_model, small_model
from e2e.models import Claim
from e2e.operator_release import NAMESPACE
from e2e.secret_search import admin_key, places_of_secrets
from e2e.settings import Settings
from e2e.streams import ask, wait_reachable
from e2e.workspace import Workspace

CAPITAL = "What is the capital of France?"
RELOAD_S = 120.0  # a kubelet brings a changed Secret to its pods within a minute or two
TOKEN_SHAPED = "hf_" + "Ab3dEf7hIj" * 3

# What a container can do, as its own kernel says it. POSIX: ST_RDONLY is 1.
SELF_PORTRAIT = """
import json, os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "uid": os.getuid(),
    "read_only_root": bool(os.statvfs("/").f_flag & os.ST_RDONLY),
    "capabilities": int(status["CapEff"], 16),
    "no_new_privileges": status["NoNewPrivs"].strip() == "1",
    "seccomp": status["Seccomp"].strip() == "2",
    "api_token": os.path.exists("/var/run/secrets/kubernetes.io/serviceaccount/token"),
}))
"""
RESTRICTED_PORTRAIT = {"read_only_root": True, "capabilities": 0, "no_new_privileges": True, "seccomp": True}


@pytest.fixture
def random_uid() -> int:
    """As platforms choose one for a namespace; no image has a user for it."""
    return random.randrange(1_000_000_000, 2_000_000_000)


def as_user(uid: int) -> Object:
    """`spec.pod` that gives all pods a user, as an admission webhook of the platform would."""
    return {"patch": {"spec": {"securityContext": {"runAsUser": uid, "runAsGroup": uid}}}}


@pytest.mark.usefixtures("model_claim")
async def test_a_serving_pod_runs_as_any_user_on_a_read_only_root(workspace: Workspace, random_uid: int) -> None:
    with pytest.raises(RefusedError, match="violates PodSecurity"):  # the namespace does enforce it
        await workspace.kubectl("run", "bare", "--image=any", "--dry-run=server")
    await workspace.apply(small_model("smollm", pod=as_user(random_uid)))
    await workspace.wait_ready("smollm", START_S)
    url = await workspace.url("smollm")
    await wait_reachable(url)
    assert "Paris" in await ask(url, "smollm", CAPITAL)
    [pod] = await workspace.pods("smollm")
    portrait = await portrait_of(workspace.kube, workspace.name, pod["metadata"]["name"], "octavo")
    assert portrait == {**RESTRICTED_PORTRAIT, "uid": random_uid, "api_token": False}


async def test_an_operator_pod_runs_as_any_user_on_a_read_only_root(
    kube: Kubernetes, settings: Settings, random_uid: int
) -> None:
    """One more of it, which stands by: the others lead."""
    namespace = await kube.get("Namespace", NAMESPACE)
    assert namespace is not None
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    [deployment] = await kube.select("Deployment", NAMESPACE, "app.kubernetes.io/name=octavo-operator")
    spec = {**deployment["spec"]["template"]["spec"]}
    spec["securityContext"] = {**spec["securityContext"], "runAsUser": random_uid, "runAsGroup": random_uid}
    spec["containers"] = [{**spec["containers"][0], "image": settings.operator_image}]
    name = f"e2e-any-user-{secrets.token_hex(2)}"
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"octavo.dev/e2e": "true"}}
    await kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    try:
        await wait_for(f"pod {name} to be ready", lambda: is_ready(kube, name), 60)
        portrait = await portrait_of(kube, NAMESPACE, name, "operator")
        assert portrait == {**RESTRICTED_PORTRAIT, "uid": random_uid, "api_token": True}
    except NeverHappenedError as error:
        raise NeverHappenedError(f"{error}\n{await kube.logs(name, NAMESPACE)}") from None
    finally:
        await kube.kubectl("delete", "pod", name, f"--namespace={NAMESPACE}", "--grace-period=1")


async def test_a_gated_model_reaches_its_pods_and_no_secret_shows_up_anywhere(
    workspace: Workspace, hub: Hub, weights_claim: Claim, random_uid: int
) -> None:
    right, wrong, api_key = f"hf_{secrets.token_hex(17)}", f"hf_{secrets.token_hex(17)}", secrets.token_hex(24)
    hub.behave(token=right)
    await put_secret(workspace, "hub", {"HF_TOKEN": wrong})
    await put_secret(workspace, "team-a", {"laptop": api_key}, {"octavo-keys": "chat"})
    manifest = small_model(
        "smollm",
        model=hub_model(hub.url, credentials={"secretRef": {"name": "hub"}}),
        cache={"mode": "SharedPVC", "sharedPVC": {"claimName": weights_claim.name}},
        access={"apiKeys": {"secretSelector": {"octavo-keys": "chat"}}},
        pod=as_user(random_uid),
    )
    await workspace.apply(manifest)
    await workspace.wait_stalled("smollm", "ModelAccessDenied")
    await put_secret(workspace, "hub", {"HF_TOKEN": right})
    await workspace.wait_ready("smollm", START_S)
    url = await workspace.url("smollm")
    await wait_reachable(url)
    assert "Paris" in await ask(url, "smollm", CAPITAL, api_key=api_key)

    hub.behave(status=500)  # whoever needs it now is lost
    await workspace.patch("LLMDeployment", "smollm", {"spec": {"replicas": 2}})
    await workspace.wait_ready("smollm", START_S)
    jobs, pods = await workspace.select("Job"), await workspace.pods("smollm")
    assert len(jobs) == 1, "one download, whoever reads it"
    assert len(pods) == 2
    assert all(mounts_read_only(pod, weights_claim.name) for pod in pods)
    assert not [pod["metadata"]["name"] for pod in pods if "secretKeyRef" in json.dumps(pod["spec"])]

    drain_key = await admin_key(workspace, "smollm")
    values = {"right token": right, "wrong token": wrong, "API key": api_key, "admin key": drain_key}
    assert await drain_of(pods[0], drain_key) == 200, "this is the admin key, so its absence below says something"
    assert await places_of_secrets(workspace, values, frozenset({"hub", "team-a"})) == []


@pytest.mark.usefixtures("model_claim")
async def test_keys_come_and_go_with_their_secrets_and_no_pod_restarts(workspace: Workspace) -> None:
    first, second = secrets.token_hex(24), secrets.token_hex(24)
    selector = {"octavo-keys": "chat"}
    await workspace.apply(small_model("smollm", access={"apiKeys": {"secretSelector": selector}}))
    await workspace.wait_ready("smollm", START_S)
    [pod] = await workspace.pods("smollm")
    url = await workspace.url("smollm")
    await wait_reachable(url)
    assert [await code(url, key) for key in ("", first)] == [401, 401], "no Secret matches: the door is shut"

    await put_secret(workspace, "other", {"laptop": first}, {"octavo-keys": "embeddings"})
    await put_secret(workspace, "team-a", {"laptop": first}, selector)
    await becomes(url, first, 200)
    await put_secret(workspace, "team-b", {"laptop": second, "robot": secrets.token_hex(24)}, selector)
    await becomes(url, second, 200)
    assert await code(url, first) == 200
    assert await drain_of(pod, first) == 401, "a client's key is not the operator's"

    await workspace.kubectl("label", "secret", "team-a", "octavo-keys-")
    await becomes(url, first, 401)
    assert await code(url, second) == 200
    await workspace.delete("Secret", "team-b")
    await becomes(url, second, 401)
    assert await code(url, "") == 401
    [after] = await workspace.pods("smollm")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0


LITERALS: dict[str, dict[str, Any]] = {
    "variable": {"pod": {"env": [{"name": "HF_TOKEN", "value": TOKEN_SHAPED}]}},
    "variable-of-any-name": {"pod": {"env": [{"name": "HUB", "value": TOKEN_SHAPED}]}},
    "argument": {"engine": {"extraArgs": ["--header", TOKEN_SHAPED]}},
    "secret-name": {"model": hub_model("https://hub.example", credentials={"secretRef": {"name": TOKEN_SHAPED}})},
    "endpoint": {"model": hub_model(f"https://me:{TOKEN_SHAPED}@hub.example")},
    "uri": {"model": {"uri": f"https://hub.example/model.gguf?token={TOKEN_SHAPED}"}},
}


async def test_a_literal_secret_is_refused_when_it_is_applied(workspace: Workspace) -> None:
    for place, spec in LITERALS.items():
        with pytest.raises(RefusedError, match="is invalid"):
            await workspace.apply(small_model(place, **spec))
    assert await workspace.select("LLMDeployment") == []


PATCHES: dict[str, Object] = {
    "variable": {"spec": {"containers": [{"name": "octavo", "env": [{"name": "HF_TOKEN", "value": TOKEN_SHAPED}]}]}},
    "argument": {"spec": {"containers": [{"name": "octavo", "args": ["serve", "--hf-token", TOKEN_SHAPED]}]}},
    "annotation": {"metadata": {"annotations": {"example.com/token": TOKEN_SHAPED}}},
}


@pytest.mark.usefixtures("model_claim")
async def test_a_literal_secret_in_a_patch_reaches_no_pod_and_is_never_repeated(workspace: Workspace) -> None:
    for place, patch in PATCHES.items():
        await workspace.apply(small_model(place, pod={"patch": patch}))
    for place in PATCHES:
        stalled = await workspace.wait_stalled(place, "SpecInvalid")
        assert "Secret" in condition(stalled, "Stalled")["message"]
        assert TOKEN_SHAPED not in json.dumps(stalled["status"])
    found = await places_of_secrets(workspace, {"literal": TOKEN_SHAPED}, frozenset())
    assert set(found) == {f"literal in LLMDeployment {place}" for place in PATCHES}, "where the user wrote it"


async def put_secret(
    workspace: Workspace, name: str, values: dict[str, str], labels: dict[str, str] | None = None
) -> None:
    """Without kubectl, which would keep the values in an annotation too."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    manifest: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": workspace.name, "labels": labels or {}},
        "data": data,
    }
    if await workspace.get("Secret", name) is None:
        await workspace.kube.create(manifest)
    else:
        await workspace.kube.replace(manifest)


async def portrait_of(kube: Kubernetes, namespace: str, pod: str, container: str) -> Object:
    said = await kube.kubectl(
        "exec", f"--namespace={namespace}", pod, f"--container={container}", "--", "python", "-c", SELF_PORTRAIT
    )
    return dict(json.loads(said))


async def is_ready(kube: Kubernetes, operator_pod: str) -> bool:
    return condition(await kube.get("Pod", operator_pod, NAMESPACE), "Ready").get("status") == "True"


def mounts_read_only(pod: Object, claim: str) -> bool:
    [volume] = [
        each["name"]
        for each in pod["spec"]["volumes"]
        if each.get("persistentVolumeClaim", {}).get("claimName") == claim
    ]
    mounts = [mount for container in pod["spec"]["containers"] for mount in container["volumeMounts"]]
    return all(mount.get("readOnly") for mount in mounts if mount["name"] == volume)


async def code(url: str, key: str) -> int:
    """What a client with this key (or without one) is answered."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with aiohttp.ClientSession() as session, session.get(f"{url}/v1/models", headers=headers) as answer:
        return answer.status


async def becomes(url: str, key: str, status: int) -> None:
    async def answers() -> bool:
        await asyncio.sleep(0.3)
        return await code(url, key) == status

    await wait_for(f"answer {status}", answers, RELOAD_S)


async def drain_of(pod: Object, key: str) -> int:
    """The status with which a pod answers whoever asks for its drain; nothing is begun."""
    url = f"http://{pod['status']['podIP']}:8000/drain"
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status
