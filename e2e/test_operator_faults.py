"""What befalls the operator and the servers it depends on: each story ends in the state that the spec asks for, no client loses a
stream on the way, one replica writes at a time, and no child is made twice.
"""

import asyncio
import logging
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from e2e.api_proxy import ApiProxy, Trouble, start_proxy
from e2e.children import quiet_children
from e2e.cluster.faults import Faults
from e2e.kubernetes import NeverHappenedError, Object, argument, wait_for
from e2e.manifests import START_S, small_model
from e2e.operator_process import OperatorProcess
from e2e.operator_release import OperatorRelease
from e2e.settings import Settings
from e2e.streams import Chat, Tally, open_streams, wait_reachable
from e2e.workspace import Workspace

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("model_claim")]

NAME = "smollm"
SETTLE_S = 300.0
Hand = Callable[[OperatorProcess, ApiProxy], None]
TERM_S = 15.0  # of the Lease
STREAMS = 4
KILLS_A_ROUND = 5
WELL = Trouble()
TROUBLE = Trouble(
    reads_refused={429: 0.05, 500: 0.04, 503: 0.04},
    writes_refused={409: 0.1, 429: 0.1, 500: 0.04, 503: 0.04},
    lost=0.08,
    watch_seconds=6.0,
)
CHANGES = (
    (1, 32),
    (1, 40),
    (3, 40),
    (2, 48),
    (2, 32),
    (1, 32),
    (2, 40),
    (3, 48),
    (1, 48),
    (2, 32),
)  # replicas, maxNumSeqs


def manifest(replicas: int, max_num_seqs: int) -> Object:
    engine = {"device": "cpu", "maxModelLen": 1024, "maxNumSeqs": max_num_seqs}
    rollout = {"drain": {"timeoutSeconds": 120, "unrouteSeconds": 1}}
    return small_model(NAME, replicas=replicas, engine=engine, rollout=rollout)


async def settled(workspace: Workspace, replicas: int, max_num_seqs: int) -> None:
    """The cluster is what the spec asks for: so many serving pods of it, no other, and one of each child."""
    await workspace.wait_ready(NAME, SETTLE_S)
    await quiet_children(workspace, NAME)
    seen = await workspace.wait_ready(NAME, SETTLE_S)
    status = seen["status"]
    target = status["revisions"]["target"]["hash"]
    pods = await workspace.pods(NAME)
    marks = [(pod["metadata"]["labels"]["octavo.dev/revision"], argument(pod, "--max-num-seqs")) for pod in pods]
    assert marks == [(target, str(max_num_seqs))] * replicas, await workspace.story(NAME)
    assert (status["replicas"], status["readyReplicas"]) == (replicas, replicas)
    labels = f"octavo.dev/deployment={NAME}"
    for kind in ("Deployment", "ControllerRevision", "ReplicaSet"):
        children = await workspace.select(kind, labels)
        each = Counter(child["metadata"]["labels"]["octavo.dev/revision"] for child in children)
        assert set(each.values()) == {1}, f"{kind}: {each}"
    running = [each for each in await workspace.select("Deployment", labels) if each["spec"]["replicas"]]
    assert [each["metadata"]["labels"]["octavo.dev/revision"] for each in running] == [target]
    assert len(await workspace.select("Service", labels)) == 2  # for clients, and the headless one


@asynccontextmanager
async def served(workspace: Workspace, replicas: int = 1, max_num_seqs: int = 32) -> AsyncIterator[Tally]:
    """Ready, and with streams open all along."""
    await workspace.apply(manifest(replicas, max_num_seqs))
    await workspace.wait_ready(NAME, START_S)
    url = await workspace.url(NAME)
    await wait_reachable(url)
    async with open_streams(Chat(url, NAME, "Count to ten.", max_tokens=16), STREAMS) as tally:
        yield tally
    assert tally.failed == 0, str(tally)
    log.info("%s", tally)


@pytest.fixture
async def replicas(
    settings: Settings, operator_release: OperatorRelease, tmp_path: Path, proxy_socket: Path
) -> AsyncIterator["Replicas"]:
    """Operators on this machine instead of the chart's."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(operator_release.away())
        yield Replicas(settings, tmp_path, proxy_socket, stack)


class Replicas:
    """Makes them, each behind a proxy of its own, and ends them."""

    def __init__(self, settings: Settings, folder: Path, proxy_socket: Path, stack: AsyncExitStack) -> None:
        self._settings, self._folder, self._socket, self._stack = settings, folder, proxy_socket, stack

    async def start(self, identity: str, trouble: Trouble = WELL) -> tuple[OperatorProcess, ApiProxy]:
        proxy = await self._stack.enter_async_context(start_proxy(self._socket, trouble))
        kubeconfig = proxy.kubeconfig(self._folder / f"{identity}.yaml")
        operator = OperatorProcess(self._settings, kubeconfig, identity, self._folder)
        operator.start()
        self._stack.callback(operator.kill)
        return operator, proxy


async def until_leads(operator: OperatorProcess, within: float = 60.0) -> None:
    async def probe() -> bool:
        return await asyncio.to_thread(operator.leads)

    try:
        await wait_for(f"{operator.identity} to lead", probe, within)
    except NeverHappenedError as error:
        raise NeverHappenedError(f"{error}\n{operator.log.read_text()[-3000:]}") from None


async def test_an_operator_killed_at_fifty_moments_of_rollouts_and_scaling_finishes_them_all(
    workspace: Workspace, replicas: Replicas
) -> None:
    seed = random.randrange(1_000_000)
    log.info("seed %d", seed)
    dice = random.Random(seed)
    operator, _ = await replicas.start("killed")
    await until_leads(operator)
    async with served(workspace, *CHANGES[0]):
        for change in (*CHANGES[1:], CHANGES[0]):
            await workspace.apply(manifest(*change))
            for _ in range(KILLS_A_ROUND):
                await asyncio.sleep(dice.uniform(0, 7))  # it takes two or three to begin
                operator.kill()
                operator.start()
            started = time.monotonic()
            await settled(workspace, *change)
            log.info("%s: settled %.1f s after the last kill", change, time.monotonic() - started)


def stand_still(operator: OperatorProcess, _: ApiProxy) -> None:
    """As on a machine that swaps, or is moved."""
    operator.send(signal.SIGSTOP)


def go_on(operator: OperatorProcess, _: ApiProxy) -> None:
    operator.send(signal.SIGCONT)


def cut_off(_: OperatorProcess, proxy: ApiProxy) -> None:
    """It runs, and hears nothing of the API server."""
    proxy.fall_silent()


def join(_: OperatorProcess, proxy: ApiProxy) -> None:
    proxy.speak_again()


@pytest.mark.parametrize(("lose", "find_again"), [(stand_still, go_on), (cut_off, join)], ids=["stopped", "cut off"])
async def test_a_replica_that_lost_its_lease_writes_nothing_more(
    workspace: Workspace, replicas: Replicas, lose: Hand, find_again: Hand
) -> None:
    """In the middle of a rollout; the other one takes over, and later, when that one is killed, the first again."""
    first, of_first = await replicas.start("first")
    await until_leads(first)
    second, of_second = await replicas.start("second")
    async with served(workspace):
        await workspace.apply(manifest(2, 40))
        await asyncio.sleep(1.5)
        lose(first, of_first)
        lost = time.monotonic()
        await until_leads(second, 3 * TERM_S)
        log.info("the other leads after %.1f s", time.monotonic() - lost)
        find_again(first, of_first)
        await settled(workspace, 2, 40)
        await workspace.apply(manifest(1, 48))
        await settled(workspace, 1, 48)
        assert of_second.writes
        begun = of_second.writes[0].at
        assert begun - lost >= TERM_S - 5, "the last renewal is five seconds old at most"
        assert [write for write in of_first.writes if write.at > begun] == []
        second.kill()
        killed = time.monotonic()
        await workspace.apply(manifest(2, 32))
        await settled(workspace, 2, 32)
        again = [write.at for write in of_first.writes if write.at > killed]
        assert again
        assert TERM_S - 5 <= again[0] - killed <= 3 * TERM_S
        assert of_second.writes[-1].at <= killed


async def test_refusals_conflicts_and_broken_watches_delay_and_spoil_nothing(
    workspace: Workspace, replicas: Replicas
) -> None:
    operator, proxy = await replicas.start("troubled", TROUBLE)
    await until_leads(operator)
    async with served(workspace):
        for change in ((2, 40), (3, 40), (1, 32)):
            await workspace.apply(manifest(*change))
            await settled(workspace, *change)
        log.info("%s of %d writes", dict(proxy.spoilt), len(proxy.writes))
        kinds = {what.split(" to ")[0] for what in proxy.spoilt}
        assert kinds == {"409", "429", "500", "503", "answer lost", "watch cut", "410 in a watch"}


FAULTS: dict[str, Callable[[Faults], object]] = {
    "the API server is killed": lambda faults: faults.restart_api_server(pause=5),
    "etcd is restarted": lambda faults: faults.restart_etcd(pause=5),
    "every connection is cut": lambda faults: faults.cut_watches(),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_rollout_goes_on_after(workspace: Workspace, faults: Faults, fault: str) -> None:
    """Three times in each rollout, under load, with the chart's own two replicas."""
    async with served(workspace):
        for change in ((2, 40), (1, 32)):
            await workspace.apply(manifest(*change))
            for seconds in (1, 4, 8):
                await asyncio.sleep(seconds)
                await asyncio.to_thread(FAULTS[fault], faults)
            await settled(workspace, *change)


async def test_a_rollout_goes_on_after_the_api_server_was_silent(workspace: Workspace, faults: Faults) -> None:
    """Packets are dropped: connections stay open and nothing comes, longer than the Lease lasts."""
    async with served(workspace):
        await workspace.apply(manifest(2, 40))
        await asyncio.sleep(2)
        with faults.api_server_silent():
            await asyncio.sleep(25)
        await settled(workspace, 2, 40)
