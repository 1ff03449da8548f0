"""`Leader`: one writer at a time, by a Lease. Every replica stands for election; one leads, and stops before it is too late.

A holder that has not renewed for `renew_seconds` stops its work at once; another takes over only after the Lease has not
moved for `lease_seconds` by its own clock. The gap between the two is what requests on their way have left to arrive. A Lease
that is not there counts as one that does not move: who deleted it may be uninstalling, and its holder may not know yet.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from octavo_operator.kube_client import ApiError, Conflict, KubeClient, NotFound, Raw

log = logging.getLogger(__name__)

RELEASE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Election:
    """Where the Lease is, who stands, and the times."""

    namespace: str
    name: str
    identity: str
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


class Leader:
    """Runs `lead` while this process holds the Lease."""

    def __init__(
        self,
        kube: KubeClient,
        election: Election,
        *,
        on_change: Callable[[bool], None] = lambda _leads: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._election = election
        self._on_change = on_change
        self._clock = clock
        self._lease: Raw | None = None  # as we last wrote it
        self._rival: tuple[str, str] = ("", "")  # holder and renewTime that we last saw
        self._rival_since = 0.0
        self._held_until = 0.0
        self._failing = False  # said once, not every two seconds

    def holds(self) -> bool:
        """Whether the Lease is surely ours at this moment: also asked by a process that was stopped and goes on."""
        return self._clock() < self._held_until

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Stand, lead, stand again, until cancelled or until `lead` ends by itself; then let the Lease go."""
        try:
            while True:
                renewed_at = await self._acquire()
                if await self._lead(lead, renewed_at):
                    return
        finally:
            await self._release()

    async def _acquire(self) -> float:
        """Wait until the Lease is ours. Returns when it was last surely not yet renewed."""
        while True:
            started = self._clock()
            if await self._try(self._election.renew_seconds):
                return started
            await asyncio.sleep(self._election.retry_seconds * random.uniform(0.5, 1.0))

    async def _lead(self, lead: Callable[[], Awaitable[None]], renewed_at: float) -> bool:
        """True when `lead` ended by itself; False when the Lease was lost and `lead` stopped."""
        log.info("leading", extra={"fields": {"identity": self._election.identity}})
        self._on_change(True)
        self._held_until = renewed_at + self._election.renew_seconds
        work = asyncio.ensure_future(lead())
        try:
            await self._renew(work)
        finally:
            ended = work.done()
            self._held_until = 0.0
            work.cancel()
            await asyncio.wait({work})
            self._on_change(False)
        if not ended:
            log.warning("no longer leading: the Lease could not be renewed")
            return False
        await work  # raises what it raised
        return True

    async def _renew(self, work: asyncio.Future[None]) -> None:
        """Keep the Lease until it cannot be kept, or the work ends."""
        while True:
            await asyncio.wait({work}, timeout=self._election.retry_seconds)
            started = self._clock()
            left = self._held_until - started
            if work.done() or left <= 0:
                return
            if await self._try(left):
                self._held_until = started + self._election.renew_seconds
            elif self._rival[0]:
                return

    async def _try(self, seconds: float) -> bool:
        """Take or renew the Lease; False when it is another's, or no answer came in time."""
        try:
            async with asyncio.timeout(seconds):
                written = await self._write(await self._read())
            self._failing = False
            return written
        except Conflict:
            self._lease = None
        except (ApiError, TimeoutError) as error:
            self._lease = None
            if not self._failing:
                log.warning("the Lease cannot be written: %s", str(error) or "no answer in time")
            self._failing = True
        return False

    async def _read(self) -> Raw | None:
        """The Lease; None when there is none yet. Our own last write spares the question."""
        if self._lease is not None:
            return self._lease
        try:
            return await self._kube.get("Lease", self._election.namespace, self._election.name)
        except NotFound:
            return None

    async def _write(self, lease: Raw | None) -> bool:
        if lease is None:
            if not self._has_expired("", {}):
                return False
            self._rival = ("", "")
            self._lease = await self._kube.create(self._manifest({}, {}))
            return True
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder not in ("", self._election.identity) and not self._has_expired(holder, spec):
            return False
        self._rival = ("", "")
        self._lease = await self._kube.replace(self._manifest(lease["metadata"], spec))
        return True

    def _has_expired(self, holder: str, spec: Raw) -> bool:
        """Whether the holder has not moved for a whole term of ours. Clocks of two machines are never compared."""
        now, seen = self._clock(), (holder, str(spec.get("renewTime")))
        if seen != self._rival:
            self._rival, self._rival_since = seen, now
            if not holder:
                log.info("there is no Lease: one is made unless another replica shows within its term")
        term = max(self._election.lease_seconds, float(spec.get("leaseDurationSeconds") or 0))
        return now - self._rival_since >= term

    def _manifest(self, metadata: Raw, spec: Raw, *, holder: str | None = None) -> Raw:
        identity = self._election.identity if holder is None else holder
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        is_new = spec.get("holderIdentity") != identity
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                # What others wrote stays: Helm removes only what bears its marks. The uid and the version are preconditions:
                # a PUT without the uid would make a Lease anew that was deleted.
                **{name: value for name, value in metadata.items() if name != "managedFields"},
                "namespace": self._election.namespace,
                "name": self._election.name,
            },
            "spec": {
                "holderIdentity": identity,
                "leaseDurationSeconds": int(self._election.lease_seconds) if identity else 1,
                "acquireTime": now if is_new else spec.get("acquireTime", now),
                "renewTime": now,
                "leaseTransitions": int(spec.get("leaseTransitions") or 0) + int(is_new and bool(spec and identity)),
            },
        }

    async def _release(self) -> None:
        """Let the next one in at once. Best effort: without it the Lease runs out."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._kube.replace(self._manifest(lease["metadata"], lease.get("spec") or {}, holder=""))
            log.info("the Lease is released")
