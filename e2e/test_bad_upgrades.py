"""Bad upgrades: each of the twenty causes leaves the stable revision serving, is named, and is mended by a fixed spec.

One stable deployment serves for most of them. Causes that no pod is started for come first.
"""

import asyncio
import contextlib
import json
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from e2e.bad_upgrade import NAME, SERVED_NAME, Cause, break_and_mend, manifest, serve_stable
from e2e.cluster.faults import Faults
from e2e.hub import Hub
from e2e.kubernetes import Kubernetes, Object, condition
from e2e.models import HUB_NAME, Claim
from e2e.settings import Settings
from e2e.streams import ask
from e2e.workspace import Workspace, make_workspace, remove_workspace

HUB = "http://hub"  # stands for the address of the hub mirror in a change
FROM_HUB = {"uri": f"hf://{HUB_NAME}", "endpoint": HUB}
UNKNOWN = "octavo-e2e/unknown-architecture"
TEST_GPU = "example.com/gpu"  # of our own, so that other tests' GPUs are left alone
CODE_THAT_ENDS = "import time; time.sleep(1); raise SystemExit(3)"
CODE_THAT_GROWS = "b'x' * (1 << 30)"


def _runs(code: str) -> Object:
    """The serving container runs that instead."""
    container = {"name": "octavo", "command": ["python", "-c", code]}
    return {"pod": {"patch": {"spec": {"containers": [container]}}}}


BEFORE_ANY_POD = {
    "revision not found": Cause(
        "RevisionNotFound", "model.revision", {"model": {**FROM_HUB, "revision": "no-such-branch"}}
    ),
    "access denied": Cause(
        "ModelAccessDenied", "model.credentials", {"model": FROM_HUB}, {"status": 403, "code": "GatedRepo"}
    ),
    "digest mismatch": Cause("DigestMismatch", "model.digest", {"model": {**FROM_HUB, "digest": f"sha256:{'0' * 64}"}}),
    "tensor parallel size that does not divide": Cause(
        "ParallelismMismatch",
        "engine.tensorParallelSize",
        {"model": FROM_HUB, "engine": {"device": "cuda", "tensorParallelSize": 2}},
    ),
    "context too large": Cause(
        "ContextTooLarge", "engine.maxModelLen", {"model": FROM_HUB, "engine": {"maxModelLen": 100_000}}
    ),
}
"""The core of the suite: seconds each."""

KNOWN_FROM_THE_HUB = {
    "too many requests": Cause(
        "ModelRateLimited",
        "model.credentials",
        {"model": FROM_HUB, "engine": {"maxNumSeqs": 32}},
        {"status": 429, "retry_after": "5"},
        fixed={"model": FROM_HUB, "engine": {"maxNumSeqs": 32}},  # it was right all along
        stalls=False,
    ),
    "truncated weights": Cause(
        "ModelCorrupt", "model.revision", {"model": FROM_HUB}, {"truncate": {"model.safetensors": 100_000_000}}
    ),
    "unknown architecture": Cause(
        "ModelUnsupported", "architecture", {"model": {**FROM_HUB, "uri": f"hf://{UNKNOWN}"}}
    ),
    "quantization the device lacks": Cause(
        "QuantizationUnsupported", "engine.quantization", {"model": FROM_HUB, "engine": {"quantization": "fp8"}}
    ),
}

FOUND_BY_THE_POD = {
    "killed at its memory limit": Cause(
        "OutOfMemory", "resources.memory", {"resources": {"memory": "256Mi"}, **_runs(CODE_THAT_GROWS)}, makes_pods=True
    ),
    "crash loop": Cause("CrashLoop", "kubectl logs --previous", _runs(CODE_THAT_ENDS), makes_pods=True),
    "start-up deadline": Cause(
        "StartupDeadlineExceeded",
        "startup.timeoutSeconds",
        {"model": FROM_HUB, "startup": {"timeoutSeconds": 15}},
        {"bytes_per_second": 2_000_000},
        makes_pods=True,
        within=180,
    ),
    "truncated weights on a claim": Cause(
        "ModelCorrupt", "model.revision", {"model": {"uri": "pvc://truncated"}}, makes_pods=True, within=180
    ),
}


@pytest.fixture(scope="module")
def stable_namespace(
    settings: Settings, proxy_socket: Path, model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A namespace in which the stable revision serves, for all tests of this module in this process."""
    truncated = _truncated(model_folder, tmp_path_factory.mktemp("truncated"))

    async def begin() -> str:
        async with _connect(settings, proxy_socket) as kube:
            workspace = await make_workspace(kube, "bad-upgrades")
            await Claim(workspace, "model").create(model_folder)
            await Claim(workspace, "truncated").create(truncated)
            return workspace.name

    async def end(name: str) -> None:
        async with _connect(settings, proxy_socket) as kube:
            workspace = Workspace(kube, name)
            await remove_workspace(workspace)
            for claim in ("model", "truncated"):
                await Claim(workspace, claim).remove()

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        name = runner.run(begin())
        yield name
        runner.run(end(name))


@pytest.fixture
async def workspace(stable_namespace: str, kube: Kubernetes) -> Workspace:
    """The namespace of the stable revision."""
    return Workspace(kube, stable_namespace)


@pytest.fixture(scope="module")
def hub_with_unknown(hub_process: Hub, model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Hub:
    """With a model of an architecture that nobody serves."""
    folder = tmp_path_factory.mktemp("unknown")
    for file in model_folder.iterdir():
        (folder / file.name).symlink_to(file)
    config = json.loads((model_folder / "config.json").read_text())
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["MartianForCausalLM"]}))
    hub_process.add(UNKNOWN, "main", folder)
    return hub_process


@pytest.mark.core
@pytest.mark.parametrize("name", BEFORE_ANY_POD)
async def test_what_the_hub_tells_is_refused_before_any_pod(workspace: Workspace, hub: Hub, name: str) -> None:
    await _play(workspace, hub, BEFORE_ANY_POD[name])


@pytest.mark.usefixtures("hub_with_unknown")
@pytest.mark.parametrize("name", KNOWN_FROM_THE_HUB)
async def test_what_is_wrong_with_the_model_is_known_from_the_hub(workspace: Workspace, hub: Hub, name: str) -> None:
    await _play(workspace, hub, KNOWN_FROM_THE_HUB[name])


@pytest.mark.parametrize("name", FOUND_BY_THE_POD)
async def test_what_ends_a_new_pod_is_told_and_rolled_back(workspace: Workspace, hub: Hub, name: str) -> None:
    await _play(workspace, hub, FOUND_BY_THE_POD[name])


async def test_pod_security_that_denies_the_new_pod_leaves_the_old_one(workspace: Workspace) -> None:
    change = {"pod": {"patch": {"spec": {"hostNetwork": True}}}}
    await break_and_mend(workspace, Cause("PodSecurityDenied", "pod.patch", change))


async def test_an_image_that_is_missing_is_rolled_back(workspace: Workspace, settings: Settings) -> None:
    image = f"{settings.runtime_image.rpartition(':')[0]}:no-such-tag"
    cause = Cause("ImagePullFailed", "engine.image", {"engine": {"image": image}}, makes_pods=True)
    await break_and_mend(workspace, cause)


async def test_more_gpus_than_any_node_has_take_no_stable_pod_away(workspace: Workspace, faults: Faults) -> None:
    faults.set_gpus("node1", 2, TEST_GPU)
    try:
        change = {
            "engine": {"device": "cuda", "tensorParallelSize": 8},
            "resources": {"gpuResource": TEST_GPU},
        }
        await break_and_mend(workspace, Cause("ImpossibleRequest", "tensorParallelSize", change))
    finally:
        faults.remove_gpus("node1", TEST_GPU)


async def test_a_quota_without_room_for_the_new_pod_keeps_the_old_one(workspace: Workspace) -> None:
    """The new pod would not fit even into the old one's place, so the old one stays."""
    hard = {"requests.memory": "2500Mi"}
    quota = {"name": "tight", "namespace": workspace.name}
    await workspace.kube.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": quota, "spec": {"hard": hard}}
    )
    try:
        await break_and_mend(
            workspace, Cause("WaitingForQuota", "quota", {"resources": {"memory": "3Gi"}}, stalls=False)
        )
    finally:
        await workspace.delete("ResourceQuota", "tight")


async def test_a_claim_for_one_node_is_not_given_to_two_replicas(workspace: Workspace, model_folder: Path) -> None:
    claim = Claim(workspace, "one-node")
    await claim.create(model_folder, modes=("ReadWriteOnce",))
    try:
        change = {"model": {"uri": "pvc://one-node"}, "replicas": 2}
        await break_and_mend(workspace, Cause("VolumeMultiAttach", "ReadWriteMany", change, same_pod=False))
    finally:
        await workspace.delete("PersistentVolumeClaim", "one-node")
        await claim.remove()


async def test_a_storage_class_that_does_not_exist_is_named(workspace: Workspace, hub: Hub) -> None:
    shared = {"storageClassName": "no-such-class", "size": "1Gi"}
    change = {"model": FROM_HUB, "cache": {"mode": "SharedPVC", "sharedPVC": shared}}
    await _play(workspace, hub, Cause("StorageClassMissing", "storageClassName", change))


async def test_a_disk_that_is_full_fails_the_download_alone(
    workspace: Workspace, hub: Hub, faults: Faults, tmp_path: Path
) -> None:
    with faults.small_folder(tmp_path / "disk", "64m") as folder:
        claim = Claim(workspace, "small")
        await claim.create(folder, size="64Mi")
        try:
            change = {"model": FROM_HUB, "cache": {"mode": "SharedPVC", "sharedPVC": {"claimName": "small"}}}
            await _play(workspace, hub, Cause("DiskFull", "claim", change, within=120))
        finally:
            await workspace.delete("PersistentVolumeClaim", "small")
            await claim.remove()


async def test_an_engine_that_hangs_is_restarted_while_the_other_replica_serves(
    workspace: Workspace, faults: Faults
) -> None:
    """SIGSTOP to the engine's process, with a request in it."""
    await workspace.apply(manifest({"replicas": 2, "liveness": {"engineStallSeconds": 30}}))
    await workspace.wait_ready(NAME, within=240)
    hung, other = sorted(await workspace.pods(NAME), key=lambda pod: str(pod["metadata"]["name"]))
    engine = next(pid for pid, line in faults.processes(hung) if "engine_process" in line)
    faults.signal(engine, signal.SIGSTOP)
    asking = asyncio.create_task(ask(_address(hung), SERVED_NAME, "Hello", max_tokens=4))
    seen = await workspace.wait_condition(NAME, "Ready", "False", reason="EngineStalled", within=120)
    assert seen["status"]["lastFailure"]["reason"] == "EngineStalled"
    assert "kubectl logs --previous" in seen["status"]["lastFailure"]["remedy"]
    assert condition(seen, "Available")["status"] == "True"
    assert await ask(_address(other), SERVED_NAME, "Hello", max_tokens=4)
    with contextlib.suppress(aiohttp.ClientError):
        await asyncio.wait_for(asking, timeout=30)  # lost with its engine, but not left hanging
    healed = await workspace.wait_ready(NAME, within=240)
    assert healed["status"]["readyReplicas"] == 2


async def _play(workspace: Workspace, hub: Hub, cause: Cause) -> None:
    """With a hub that misbehaves as the cause says, until it is mended."""
    placed = replace(cause, change=_at(hub, cause.change), fixed=_at(hub, cause.fixed) if cause.fixed else None)
    await serve_stable(workspace)
    if cause.upset:
        hub.behave(**cause.upset)
    await break_and_mend(workspace, placed, hub.mend)


def _at(hub: Hub, change: Object) -> Object:
    """The change with the hub's address in it."""
    placed: Object = json.loads(json.dumps(change).replace(f'"{HUB}"', json.dumps(hub.url)))
    return placed


def _address(pod: Object) -> str:
    return f"http://{pod['status']['podIP']}:8000"


def _truncated(model: Path, folder: Path) -> Path:
    """The model's folder with half of the weights."""
    folder.chmod(0o755)
    for file in model.iterdir():
        if file.suffix != ".safetensors":
            shutil.copy(file, folder)
    whole = model / "model.safetensors"
    with whole.open("rb") as source, (folder / whole.name).open("wb") as target:
        target.write(source.read(whole.stat().st_size // 2))
    return folder


@contextlib.asynccontextmanager
async def _connect(settings: Settings, proxy_socket: Path) -> AsyncIterator[Kubernetes]:
    """As the fixture `kube`, for what outlives one test."""
    connector = aiohttp.UnixConnector(path=str(proxy_socket))
    async with aiohttp.ClientSession("http://localhost", connector=connector) as session:
        yield Kubernetes(settings.kubeconfig, session)
