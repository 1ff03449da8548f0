"""`Relister`: lists every watched kind at the start, and again every few minutes. A lost watch event costs no longer than that.

The first round fills the cache: nothing is reconciled before it. Keys are requeued in a rhythm of their own.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence

from octavo_operator.intake import Intake
from octavo_operator.kinds import WATCHED, Kind
from octavo_operator.kube_client import ApiError, KubeClient, NotFound, ObjectList, TooManyRequests

log = logging.getLogger(__name__)

RETRY_SECONDS = 2.0


class Relister:
    """The other half of watching."""

    def __init__(
        self,
        kube: KubeClient,
        intake: Intake,
        namespaces: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._intake = intake
        self._namespaces: Sequence[str | None] = tuple(namespaces) or (None,)
        self._clock = clock
        self._last: float | None = None

    @property
    def synced(self) -> bool:
        """Whether everything was listed once."""
        return self._last is not None

    @property
    def age_seconds(self) -> float:
        """Since everything was listed; 0 before the first time."""
        return self._clock() - self._last if self._last is not None else 0.0

    async def sync(self) -> None:
        """List everything, as often as it takes."""
        while True:
            if await self.relist():
                return
            await asyncio.sleep(RETRY_SECONDS)

    async def relist(self) -> bool:
        """List everything once. False when a kind could not be listed: what is known of it stays."""
        complete = True
        for kind in WATCHED:
            for namespace in self._namespaces if kind.namespaced else (None,):
                complete &= await self._list(kind, namespace)
        if complete:
            self._last = self._clock()
        return complete

    async def keep_listing(self, seconds: float) -> None:
        """Until cancelled, in rounds of about so many seconds; sooner after a failure."""
        while True:
            await asyncio.sleep(seconds * random.uniform(0.8, 1.0))  # replicas shall not list together
            await self.sync()

    async def keep_waking(self, seconds: float) -> None:
        """Until cancelled: have every LLMDeployment looked at once in so many seconds."""
        while True:
            await asyncio.sleep(seconds)
            self._intake.wake_all(seconds)

    async def _list(self, kind: Kind, namespace: str | None) -> bool:
        try:
            found = await self._kube.list(kind.name, namespace, labels=kind.labels, fields=kind.fields)
        except NotFound:
            if not kind.optional:
                log.warning("the API server does not serve %s: is the CRD installed?", kind.plural)
                return False
            found = ObjectList(())
        except ApiError as error:
            log.warning("cannot list %s: %s", kind.plural, error)
            if isinstance(error, TooManyRequests):
                await asyncio.sleep(error.retry_after)
            return False
        self._intake.listed(kind.name, found, namespace)
        return True
