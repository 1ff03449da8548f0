"""The only wiring: settings -> client, cache, queue, reconciler -> watches, probes, election; and how it all ends.

At the end the order matters: reconciles that run may finish, then the Lease is let go, so that the next replica works while
this one still closes its watches.
"""

import asyncio
import contextlib
import logging
import signal
import time
from dataclasses import dataclass

import aiohttp
from prometheus_client import CollectorRegistry

from octavo_operator.admission import objection
from octavo_operator.autoscaling.scraper import Scraper
from octavo_operator.cache import Cache
from octavo_operator.effective import OperatorIdentity, RenderDefaults
from octavo_operator.events import EventRecorder
from octavo_operator.garbage import keep_setting_aside
from octavo_operator.handlers import Webhook
from octavo_operator.intake import Intake
from octavo_operator.kinds import WATCHED
from octavo_operator.kube import Kube
from octavo_operator.leader import Election, Leader
from octavo_operator.metrics import OperatorMetrics
from octavo_operator.model.hub import Hub, HubSettings
from octavo_operator.observe import Observer
from octavo_operator.probes import Limits, LoopLag, Vitals, make_app, serve
from octavo_operator.quantity import parse_quantity
from octavo_operator.reconcile import Doors, Reconciler, Surroundings
from octavo_operator.relist import Relister
from octavo_operator.settings import OperatorSettings, installed_version
from octavo_operator.watching import Watching, kopf_watch
from octavo_operator.work_queue import RECONCILE_SECONDS, WorkQueue

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Operator:
    """The parts of one replica, ready to run."""

    settings: OperatorSettings
    metrics: OperatorMetrics
    cache: Cache
    queue: WorkQueue
    intake: Intake
    relister: Relister
    watching: Watching
    leader: Leader
    reconciler: Reconciler
    scraper: Scraper
    lag: LoopLag

    def vitals(self) -> Vitals:
        """How it is now."""
        return Vitals(
            synced=self.relister.synced,
            queue_oldest_seconds=self.queue.oldest_seconds,
            relist_seconds=self.relister.age_seconds,
            lag_seconds=self.lag.seconds,
        )

    def refresh_metrics(self) -> None:
        """Gauges that are read, not kept."""
        self.metrics.queue_depth.set(self.queue.depth)
        self.metrics.queue_oldest_seconds.set(self.queue.oldest_seconds)
        self.metrics.watch_last_event_seconds.set(self.intake.quiet_seconds)
        self.metrics.last_relist_seconds.set(self.relister.age_seconds)
        self.metrics.loop_lag_seconds.set(self.lag.seconds)
        for kind in WATCHED:
            self.metrics.objects.labels(kind=kind.name).set(self.cache.count(kind.name))

    async def lead(self) -> None:
        """What only one replica does. Afterwards no pod hears of it: another may steer them."""
        self.intake.wake_all(0.0)
        try:
            await self.queue.work(self.reconciler.reconcile, self.settings.workers)
        finally:
            self.scraper.forget_all()

    async def watch(self) -> None:
        """Watch once everything was listed: what kopf does not find when it begins, it would never watch."""
        await self.relister.sync()
        await self.watching.run()

    async def stand_for_election(self) -> None:
        """Lead whenever it is this replica's turn. Nobody leads with an empty cache."""
        await self.relister.sync()
        if self.settings.leader_election:
            await self.leader.run(self.lead)
        else:
            self.metrics.leader.set(1)
            await self.lead()


async def run(settings: OperatorSettings) -> None:
    """Run until SIGTERM or SIGINT. Raises what ended it otherwise."""
    stop = asyncio.Event()
    listen_to_signals(stop)
    async with contextlib.AsyncExitStack() as stack:
        operator = await build(settings, stack)
        app = make_app(operator.metrics.registry, operator.vitals, limits_of(settings), operator.refresh_metrics)
        runner = await serve(app, settings.probe_host, settings.probe_port)
        stack.push_async_callback(runner.cleanup)
        log.info("started", extra={"fields": {"version": installed_version(), "identity": settings.identity}})
        await run_tasks(operator, stop)


async def build(settings: OperatorSettings, stack: contextlib.AsyncExitStack) -> Operator:
    """Make the parts; what has to be closed is left with the stack."""
    metrics, cache = OperatorMetrics(CollectorRegistry()), Cache()
    kube = await Kube.connect(timeout_seconds=settings.request_seconds, witness=cache, on_request=metrics.count_request)
    stack.push_async_callback(kube.close)
    leader = Leader(kube, election_of(settings), on_change=lambda leads: metrics.leader.set(int(leads)))
    writer = kube.fenced(leader.holds) if settings.leader_election else kube
    queue = WorkQueue(metrics)
    intake = Intake(cache, queue)
    relister = Relister(kube, intake, settings.namespaces)
    scraper = await stack.enter_async_context(Scraper(queue.add))
    session = await stack.enter_async_context(aiohttp.ClientSession(trust_env=True))
    hub = Hub(session, HubSettings(endpoint=settings.hub_endpoint) if settings.hub_endpoint else None)
    doors = Doors(
        kube=writer,
        cache=cache,
        observer=Observer(writer, cache, scraper, time.time),
        scraper=scraper,
        hub=hub,
        events=EventRecorder(writer, settings.identity, time.time),
        wake=queue.add,
        clock=time.time,
    )
    return Operator(
        settings=settings,
        metrics=metrics,
        cache=cache,
        queue=queue,
        intake=intake,
        relister=relister,
        watching=Watching(
            intake.happened, relister.relist, kopf_watch(settings.namespaces, webhook_of(settings), settings.api_server)
        ),
        leader=leader,
        reconciler=Reconciler(doors, surroundings_of(settings)),
        scraper=scraper,
        lag=LoopLag(),
    )


async def run_tasks(operator: Operator, stop: asyncio.Event) -> None:
    """Everything that runs side by side, until `stop` or until one of it ends."""
    settings = operator.settings
    leading = asyncio.create_task(operator.stand_for_election(), name="leading")
    watching = asyncio.create_task(operator.watch(), name="watching")
    background = [
        asyncio.create_task(operator.relister.keep_listing(settings.relist_seconds), name="relist"),
        asyncio.create_task(operator.relister.keep_waking(settings.requeue_seconds), name="requeue"),
        asyncio.create_task(operator.lag.keep_measuring(), name="lag"),
        asyncio.create_task(keep_setting_aside(settings.relist_seconds), name="garbage"),
    ]
    stopped = asyncio.create_task(stop.wait(), name="stop")
    everything = {leading, watching, *background, stopped}
    ended, _ = await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
    log.info("stopping", extra={"fields": {"because": ", ".join(sorted(task.get_name() for task in ended))}})
    await operator.queue.drain(settings.drain_seconds)
    await end(leading)
    for task in everything - {leading}:
        await end(task)
    for task in ended - {stopped}:
        task.result()  # raises what ended it


async def end(task: asyncio.Task[object]) -> None:
    """Cancel it and wait until it is over; what it raised is looked at by whoever wants to."""
    task.cancel()
    await asyncio.wait({task})


def listen_to_signals(stop: asyncio.Event) -> None:
    """SIGTERM and SIGINT ask for an orderly end."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)


def limits_of(settings: OperatorSettings) -> Limits:
    """Long enough that only what hangs is restarted."""
    return Limits(
        queue_oldest_seconds=3 * RECONCILE_SECONDS,
        relist_seconds=max(3 * settings.relist_seconds, 900.0),
    )


def election_of(settings: OperatorSettings) -> Election:
    """The Lease and its times."""
    return Election(
        namespace=settings.namespace,
        name=settings.lease_name,
        identity=settings.identity,
        lease_seconds=settings.lease_seconds,
        renew_seconds=settings.renew_seconds,
        retry_seconds=settings.retry_seconds,
    )


def webhook_of(settings: OperatorSettings) -> Webhook | None:
    """None unless it is wanted."""
    if not settings.webhook:
        return None
    defaults = surroundings_of(settings).defaults
    return Webhook(settings.webhook_port, settings.webhook_cert_dir, lambda raw: objection(raw, defaults))


def surroundings_of(settings: OperatorSettings) -> Surroundings:
    """What pods are made of, apart from any resource."""
    return Surroundings(
        defaults=RenderDefaults(
            image=settings.runtime_image,
            operator_version=installed_version(),
            hub_endpoint=settings.hub_endpoint,
            image_pull_policy=settings.image_pull_policy,
            image_pull_secrets=settings.image_pull_secrets,
            gpu_resource=settings.gpu_resource,
            cpu_millicores=parse_quantity("cpu", settings.runtime_pod_cpu),
            cpu_pod_memory_bytes=parse_quantity("memory", settings.runtime_pod_memory),
            fs_group=settings.fs_group,
        ),
        identity=OperatorIdentity(namespace=settings.namespace),
        admin_secret_name=settings.admin_secret_name,
    )
