"""How the parts are wired, and how it all ends."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from octavo_operator.autoscaling.scraper import Scraper
from octavo_operator.cache import Cache
from octavo_operator.handlers import Listener
from octavo_operator.intake import Intake
from octavo_operator.leader import Leader
from octavo_operator.main import (
    Operator,
    build,
    election_of,
    limits_of,
    listen_to_signals,
    run_tasks,
    surroundings_of,
    webhook_of,
)
from octavo_operator.metrics import OperatorMetrics
from octavo_operator.names import Key
from octavo_operator.probes import LoopLag
from octavo_operator.reconcile import Reconciler
from octavo_operator.relist import Relister
from octavo_operator.settings import OperatorSettings
from octavo_operator.testing import FakeKube, llm_deployment
from octavo_operator.watching import Watch, Watching
from octavo_operator.work_queue import WorkQueue

LEASE = {
    "kind": "Lease",
    "metadata": {"namespace": "octavo-system", "name": "octavo-operator"},
}  # as the chart makes it


async def quiet(_: Listener, stop: threading.Event) -> None:
    await asyncio.get_running_loop().run_in_executor(None, stop.wait)


class Work:
    """Stands for the reconciler: keeps the keys."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def reconcile(self, key: Key) -> float | None:
        self.keys.append(key)
        await self.may_end.wait()
        return None


def operator(
    kube: FakeKube, work: Work, watch: Watch = quiet, *, leader_election: bool = True, scraper: Scraper | None = None
) -> Operator:
    settings = OperatorSettings(namespace="octavo-system", identity="me", leader_election=leader_election)
    metrics, cache = OperatorMetrics(CollectorRegistry()), Cache()
    queue = WorkQueue(metrics)
    intake = Intake(cache, queue)
    relister = Relister(kube, intake, ())
    return Operator(
        settings=settings,
        metrics=metrics,
        cache=cache,
        queue=queue,
        intake=intake,
        relister=relister,
        watching=Watching(intake.happened, relister.relist, watch),
        leader=Leader(kube, election_of(settings), on_change=lambda leads: metrics.leader.set(int(leads))),
        reconciler=cast("Reconciler", work),
        scraper=scraper or Scraper(queue.add),
        lag=LoopLag(),
    )


@contextlib.asynccontextmanager
async def running(parts: Operator) -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    task = asyncio.create_task(run_tasks(parts, stop))
    yield stop
    stop.set()
    await asyncio.wait_for(task, 10)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


def holder(kube: FakeKube) -> str:
    lease = kube.find("Lease", "octavo-system", "octavo-operator")
    return str(lease.get("spec", {}).get("holderIdentity", "")) if lease else ""


async def test_what_is_there_at_the_start_is_reconciled_by_the_leader() -> None:
    kube, work = FakeKube([LEASE, llm_deployment("x", "team")]), Work()
    async with running(operator(kube, work)):
        await until(lambda: work.keys == [("team", "x")])
        assert holder(kube) == "me"
    assert holder(kube) == ""


async def test_nobody_leads_before_everything_was_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo_operator.relist.RETRY_SECONDS", 0.001)
    kube, work = FakeKube([LEASE, llm_deployment("x", "team")]), Work()
    parts = operator(kube, work)
    listed = kube.served.copy()
    kube.served.clear()
    async with running(parts):
        await asyncio.sleep(0.05)
        assert (holder(kube), work.keys, parts.vitals().synced) == ("", [], False)
        kube.served |= listed
        await until(lambda: work.keys == [("team", "x")])


async def test_a_replica_that_does_not_lead_keeps_its_cache_and_does_nothing() -> None:
    kube, work = FakeKube([LEASE, llm_deployment("x", "team")]), Work()
    spec = {"holderIdentity": "other", "renewTime": "now", "leaseDurationSeconds": 15}
    kube.put({"kind": "Lease", "metadata": {"namespace": "octavo-system", "name": "octavo-operator"}, "spec": spec})
    parts = operator(kube, work)
    async with running(parts):
        await until(lambda: parts.vitals().synced)
        await asyncio.sleep(0.02)
        assert (work.keys, parts.cache.keys(), parts.queue.depth) == ([], {("team", "x")}, 1)
        assert parts.vitals().queue_oldest_seconds == 0.0


async def test_without_election_it_works_at_once() -> None:
    kube, work = FakeKube([llm_deployment("x", "team")]), Work()
    async with running(operator(kube, work, leader_election=False)):
        await until(lambda: work.keys == [("team", "x")])
        assert kube.all("Lease") == []


async def test_watch_events_reach_the_queue() -> None:
    kube, work = FakeKube([LEASE]), Work()
    raw = llm_deployment("new", "team")
    raw["metadata"]["resourceVersion"] = "5"

    async def watch(listener: Listener, stop: threading.Event) -> None:
        listener("ADDED", raw)
        await quiet(listener, stop)

    async with running(operator(kube, work, watch)):
        await until(lambda: work.keys == [("team", "new")])


async def test_what_runs_may_end_before_the_lease_is_let_go() -> None:
    kube, work = FakeKube([LEASE, llm_deployment("x", "team")]), Work()
    work.may_end.clear()
    async with running(operator(kube, work)) as stop:
        await until(lambda: work.keys == [("team", "x")])
        stop.set()
        await asyncio.sleep(0.05)
        assert holder(kube) == "me"
        work.may_end.set()
    assert holder(kube) == ""


async def test_an_error_that_ends_a_part_ends_the_operator_and_comes_out() -> None:
    kube = FakeKube()
    parts = operator(kube, Work())

    async def broken(_: float) -> None:
        raise RuntimeError("broken")

    parts.relister.keep_listing = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="broken"):
        await run_tasks(parts, asyncio.Event())


async def test_gauges_are_set_when_they_are_read() -> None:
    kube, work = FakeKube([LEASE, llm_deployment("x", "team")]), Work()
    parts = operator(kube, work)
    async with running(parts):
        await until(lambda: work.keys != [])
        parts.refresh_metrics()
        value = parts.metrics.registry.get_sample_value
        assert value("octavo_operator_objects", {"kind": "LLMDeployment"}) == 1
        assert value("octavo_operator_leader") == 1


async def test_a_signal_asks_for_an_orderly_end() -> None:
    stop = asyncio.Event()
    listen_to_signals(stop)
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stop.wait(), 5)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(number)


@pytest.mark.parametrize("leader_election", [True, False])
async def test_what_only_a_leader_may_do_goes_through_the_fence(
    monkeypatch: pytest.MonkeyPatch, leader_election: bool
) -> None:
    kube, fenced, fences = FakeKube(), FakeKube(), list[Callable[[], bool]]()

    async def connect(**_: object) -> FakeKube:
        return kube

    def fence(may_write: Callable[[], bool]) -> FakeKube:
        fences.append(may_write)
        return fenced

    kube.close, kube.fenced = lambda: asyncio.sleep(0), fence  # type: ignore[attr-defined]
    monkeypatch.setattr("octavo_operator.main.Kube.connect", connect)
    async with contextlib.AsyncExitStack() as stack:
        settings = OperatorSettings(hub_endpoint="http://mirror", leader_election=leader_election)
        parts = await build(settings, stack)
        doors = parts.reconciler._doors
    assert parts.vitals().synced is False
    assert fences == ([parts.leader.holds] if leader_election else [])
    writer = fenced if leader_election else kube
    assert {id(each) for each in (doors.kube, doors.observer._kube, doors.events._kube)} == {id(writer)}
    assert parts.leader._kube is kube  # type: ignore[comparison-overlap]


async def test_pods_hear_nothing_of_a_replica_that_no_longer_leads() -> None:
    kube, work = FakeKube([LEASE, llm_deployment("x", "team")]), Work()
    forgotten: list[bool] = []

    class Pods(Scraper):
        def forget_all(self) -> None:
            forgotten.append(True)

    async with running(operator(kube, work, scraper=Pods(lambda _: None))):
        await until(lambda: bool(work.keys))
        assert forgotten == []
        kube.change("Lease", "octavo-system", "octavo-operator", {"spec": {"holderIdentity": "thief"}})
        await until(lambda: bool(forgotten))


def test_settings_reach_their_parts() -> None:
    settings = OperatorSettings(
        namespace="serving", identity="me", runtime_image="i:1", runtime_pod_cpu="250m", runtime_pod_memory="1Gi"
    )
    defaults = surroundings_of(settings).defaults
    assert (defaults.image, defaults.cpu_millicores, defaults.cpu_pod_memory_bytes) == ("i:1", 250, 1 << 30)
    assert surroundings_of(settings).identity.namespace == "serving"
    election = election_of(settings)
    assert (election.namespace, election.name, election.identity) == ("serving", "octavo-operator", "me")
    assert election.lease_seconds > election.renew_seconds > election.retry_seconds
    assert limits_of(settings).relist_seconds >= 3 * settings.relist_seconds


def test_the_webhook_is_off_unless_wanted() -> None:
    assert webhook_of(OperatorSettings()) is None
    webhook = webhook_of(OperatorSettings(webhook=True, webhook_port=1234))
    assert webhook is not None
    assert webhook.port == 1234
    assert webhook.objection(llm_deployment()) == ""
