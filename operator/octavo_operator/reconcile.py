"""`Reconciler.reconcile(key)`: one LLMDeployment, from what is to what should be. Running it twice changes nothing.

Observe, prepare the spec's revision, count replicas, roll, apply, judge, report. It never sees the event that woke it, and
reads nothing from its own status that it could not do without.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from octavo_operator.admin_keys import AdminKeys, load_admin_keys
from octavo_operator.api import SpecError
from octavo_operator.autoscaling.scraper import Scraper
from octavo_operator.autoscaling.targets import Target, targets
from octavo_operator.cache import Cache
from octavo_operator.desired.pod_template import scheme_of
from octavo_operator.effective import OperatorIdentity, RenderDefaults, token_key
from octavo_operator.effects import Effects
from octavo_operator.events import EventRecorder
from octavo_operator.kube_client import KubeClient, NotFound
from octavo_operator.model.hub import Hub
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.resolution import resolve
from octavo_operator.model.resolved import ResolvedModel
from octavo_operator.names import Key
from octavo_operator.observe import KINDS_SECONDS, Observer
from octavo_operator.observed import Observed
from octavo_operator.preparing import Prepared, prepare
from octavo_operator.reasons import Reason
from octavo_operator.replica_count import ReplicaCounts, Wanted
from octavo_operator.resolving import Resolutions
from octavo_operator.revision import revision_hash
from octavo_operator.rolling import Rolling, roll
from octavo_operator.situations import situation_of
from octavo_operator.status.judge import Judgement, judge
from octavo_operator.status.report import report, spec_invalid
from octavo_operator.status.situation import Situation
from octavo_operator.status.transitions import status_events

logger = logging.getLogger(__name__)

STARTING_RECHECK_SECONDS = 5.0
MISSING_RECHECK_SECONDS = 15.0  # not every kind of object that a spec may name is watched


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the operator is, apart from any resource."""

    defaults: RenderDefaults
    identity: OperatorIdentity
    admin_secret_name: str


@dataclass(frozen=True, slots=True)
class Doors:
    """Everything with an effect or a memory."""

    kube: KubeClient
    cache: Cache
    observer: Observer
    scraper: Scraper
    hub: Hub
    events: EventRecorder
    wake: Callable[[Key], None]
    clock: Callable[[], float]


class Reconciler:
    """Holds no state of a resource that could not be found again: look-ups in flight and the autoscaler's recent past."""

    def __init__(self, doors: Doors, surroundings: Surroundings) -> None:
        self._doors = doors
        self._around = surroundings
        self._resolutions = Resolutions(doors.wake, doors.clock)
        self._counts = ReplicaCounts(doors.scraper.sample)
        self._effects = Effects(doors.kube, doors.cache)
        self._keys: AdminKeys | None = None

    async def reconcile(self, key: Key) -> float | None:
        """Seconds until it wants to be called again though nothing changed; None: only when something does."""
        try:
            observed = await self._doors.observer.observe(key)
            if observed is None:
                self._forget(key)
                return None
            prepared = prepare(observed, self._resolution(key, observed), self._around.defaults)
        except SpecError as error:
            await self._report_invalid(key, str(error))
            return None
        startup = prepared.sizing.startup_seconds if prepared.sizing else 0.0
        wanted = self._counts.wanted(observed, prepared.effective, startup)
        rolling = roll(observed, prepared, wanted.replicas)
        await self._apply(rolling, prepared, wanted)
        situation = situation_of(rolling, prepared, wanted, self._effects.refusals(key))
        judgement = judge(situation)
        await self._report(situation, judgement)
        return self._recheck(key, prepared, rolling, wanted, judgement)

    def _resolution(self, key: Key, observed: Observed) -> ResolvedModel | ModelProblem | None:
        """What is known of the model of a revision that is not stored yet."""
        deployment = observed.deployment
        wanted = revision_hash(deployment.spec)
        if any(view.hash == wanted and view.data for view in observed.revisions):
            self._resolutions.forget(key)
            return None
        return self._resolutions.get(key, wanted, observed.token_hash, partial(self._resolve, observed))

    async def _resolve(self, observed: Observed) -> ResolvedModel:
        deployment = observed.deployment
        credentials = deployment.spec.model.credentials
        token = None
        if credentials is not None:
            token = await self._token(deployment.namespace, credentials.secret_ref.name, token_key(credentials))
        return await resolve(deployment.spec.model, token, self._doors.hub)

    async def _token(self, namespace: str, name: str, entry: str) -> str:
        try:
            return (await self._doors.kube.read_secret(namespace, name))[entry].decode().strip()
        except (NotFound, KeyError, UnicodeDecodeError):
            message = f"spec.model.credentials names the Secret {name} with the key {entry}, which is not there."
            raise ModelProblem(Reason.REFERENCE_MISSING, message) from None

    async def _apply(self, rolling: Rolling, prepared: Prepared, wanted: Wanted) -> None:
        keys = await self._admin_keys()
        deployment = rolling.observed.deployment
        await self._effects.carry_out(rolling, prepared, wanted.replicas, self._around.identity, keys.hash(deployment))
        watched = _targets(rolling, prepared, keys.key(deployment))
        self._doors.scraper.watch((deployment.namespace, deployment.name), watched)

    async def _admin_keys(self) -> AdminKeys:
        if self._keys is None:
            identity = self._around.identity
            self._keys = await load_admin_keys(self._doors.kube, identity.namespace, self._around.admin_secret_name)
        return self._keys

    async def _report(self, situation: Situation, judgement: Judgement) -> None:
        """Write the status if it is another one, and tell of what changed."""
        deployment = situation.observed.deployment
        status = report(situation, judgement)
        if status == deployment.status:
            return
        await self._doors.kube.patch_status(deployment.namespace, deployment.name, deployment.uid, status)
        for event in status_events(deployment.status, status):
            await self._doors.events.record(deployment, event.reason, event.message, warning=event.warning)

    async def _report_invalid(self, key: Key, message: str) -> None:
        """The spec cannot be read: say so, touch nothing that runs."""
        raw = self._doors.cache.deployment(key)
        if raw is None:
            return
        metadata, before = raw["metadata"], raw.get("status") or {}
        status = spec_invalid(before, metadata.get("generation", 0), message, self._doors.clock())
        if status != before:
            await self._doors.kube.patch_status(key[0], key[1], metadata["uid"], status)

    def _recheck(
        self, key: Key, prepared: Prepared, rolling: Rolling, wanted: Wanted, judgement: Judgement
    ) -> float | None:
        starts = wanted.replicas > 0 and not judgement.ready and not judgement.stalled
        starting = STARTING_RECHECK_SECONDS if starts else None
        missing = MISSING_RECHECK_SECONDS if rolling.observed.missing_references else None
        unmet = KINDS_SECONDS if prepared.effective.unmet else None  # no watch tells of a new kind
        times = (
            rolling.recheck_seconds,
            wanted.recheck_seconds,
            judgement.recheck_after,
            self._resolutions.retry_in(key),
            starting,
            missing,
            unmet,
        )
        return min((seconds for seconds in times if seconds is not None), default=None)

    def _forget(self, key: Key) -> None:
        self._resolutions.forget(key)
        self._counts.forget(key)
        self._effects.forget(key)
        self._doors.scraper.forget(key)


def _targets(rolling: Rolling, prepared: Prepared, admin_key: str) -> tuple[Target, ...]:
    """Pods to be asked: those that serve, by the protocol of their own revision, and those that download."""
    marked, auto = _marked(rolling), prepared.effective.auto is not None
    found: list[Target] = []
    for view in rolling.observed.revisions:
        tls = bool(view.data) and scheme_of(view.data["template"]) == "https"
        pods = [replace(pod, drain_started_at=marked.get(pod.name, pod.drain_started_at)) for pod in view.pods]
        found += targets(pods, auto, tls, admin_key)
    if prepared.download is not None:
        found += targets(prepared.download.pods, False, False, "")
    return tuple(found)


def _marked(rolling: Rolling) -> dict[str, float | None]:
    """Pods whose drain mark this pass has changed, by name."""
    plan = rolling.plan
    if plan is None:
        return {}
    return dict.fromkeys(plan.drain, rolling.observed.now) | dict.fromkeys(plan.undrain)
