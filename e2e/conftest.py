"""Fixtures of the user stories: a cluster with the operator in it, a namespace for each test, the model, load.

The operator is installed once by the process that pytest was started as, before any test, and removed after the last one; with
`-n 4` the workers share it. Faults are for tests that run alone.
"""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
from e2e.cluster import cluster
from e2e.cluster.faults import Faults
from e2e.cluster.network import free_port
from e2e.cluster.settings import API_ADDRESS
from e2e.hub import Hub, start_hub
from e2e.kubernetes import Answer, Kubectl, Kubernetes, start_proxy
from e2e.models import Claim, ensure_smollm
from e2e.operator_release import OperatorRelease
from e2e.settings import NoClusterError, Settings, read_settings
from e2e.workspace import Workspace, make_workspace, remove_workspace


def pytest_sessionstart(session: pytest.Session) -> None:
    if _is_worker(session.config) or session.config.option.collectonly:
        return
    try:
        settings = read_settings()
    except NoClusterError as error:
        pytest.exit(f"e2e: {error}", returncode=2)
    if not settings.installed:
        OperatorRelease(settings).install()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _is_worker(session.config) or session.config.option.collectonly:
        return
    with contextlib.suppress(NoClusterError):
        settings = read_settings()
        if not (settings.keep or settings.installed):
            OperatorRelease(settings).uninstall()


@pytest.fixture(scope="session")
def settings() -> Settings:
    return read_settings()


@pytest.fixture(scope="session")
def kubectl(settings: Settings) -> Kubectl:
    """kubectl with these arguments, whether it ends well or not; `given` is its standard input."""

    def run(*arguments: str, given: str = "") -> Answer:
        command = ["kubectl", f"--kubeconfig={settings.kubeconfig}", *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=120)

    return run


@pytest.fixture(scope="session")
def operator_release(settings: Settings) -> OperatorRelease:
    """The shared release, for tests that change it: alone, and inside `put_back`."""
    if settings.installed:
        pytest.skip("the operator that runs is not ours to change")
    return OperatorRelease(settings)


@pytest.fixture(scope="session")
def proxy_socket(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with start_proxy(settings.kubeconfig, tmp_path_factory.mktemp("api") / "socket") as socket:
        yield socket


@pytest.fixture
async def kube(settings: Settings, proxy_socket: Path) -> AsyncIterator[Kubernetes]:
    connector = aiohttp.UnixConnector(path=str(proxy_socket))
    async with aiohttp.ClientSession("http://localhost", connector=connector) as session:
        yield Kubernetes(settings.kubeconfig, session)


@pytest.fixture
async def workspace(kube: Kubernetes, request: pytest.FixtureRequest, settings: Settings) -> AsyncIterator[Workspace]:
    """The test's own namespace."""
    made = await make_workspace(kube, request.node.name)
    yield made
    failed = request.session.testsfailed > 0
    if not (settings.keep and failed):
        await remove_workspace(made)


@pytest.fixture(scope="session")
def model_folder(settings: Settings) -> Path:
    """SmolLM2-135M-Instruct as safetensors."""
    return ensure_smollm(settings.places)


@pytest.fixture
async def model_claim(workspace: Workspace, model_folder: Path) -> AsyncIterator[Claim]:
    """A claim whose root is the model's folder: `pvc://model`."""
    claim = Claim(workspace, "model")
    await claim.create(model_folder)
    yield claim
    await claim.remove()


@pytest.fixture
async def weights_claim(workspace: Workspace, tmp_path: Path) -> AsyncIterator[Claim]:
    """An empty claim that any user may write on."""
    await asyncio.to_thread(tmp_path.chmod, 0o777)
    claim = Claim(workspace, "weights")
    await claim.create(tmp_path)
    yield claim
    await claim.remove()


@pytest.fixture(scope="session")
def hub_process(settings: Settings, model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    if settings.mirror:
        pytest.skip("the mirror of OCTAVO_E2E_MIRROR is not ours to upset")
    root = tmp_path_factory.mktemp("hub") / "root"
    root.mkdir()
    with start_hub(root, model_folder, free_port(API_ADDRESS)) as hub:
        yield hub


@pytest.fixture
def hub(hub_process: Hub) -> Iterator[Hub]:
    """A hub mirror that is well when the test begins; a test may upset it."""
    yield hub_process
    hub_process.mend()


@pytest.fixture
def hub_url(settings: Settings, request: pytest.FixtureRequest) -> str:
    """Where pods download from, for tests that leave it as it is."""
    if settings.mirror:
        return settings.mirror
    url: str = request.getfixturevalue("hub").url
    return url


@pytest.fixture
def faults(settings: Settings) -> Faults:
    """What can be broken; the test runs alone, and only on the test cluster."""
    if not settings.on_test_cluster:
        pytest.skip("faults are for the test cluster: this one is not ours to break")
    return Faults(cluster.describe(settings.places))


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")
