"""`WorkQueue`: keys in, reconciles out. Workers, retries with backoff and jitter, and what they report.

Handlers and the scraper `add` keys at any time, whether or not anybody works: a replica that does not lead keeps its
queue. `work` runs while this process leads; cancelling it stops every reconcile at once and puts its key back.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable

from octavo_operator.key_queue import KeyQueue, Taken
from octavo_operator.kube_client import ApiError, Conflict, TooManyRequests
from octavo_operator.metrics import OperatorMetrics
from octavo_operator.names import Key

log = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 60.0
RECONCILE_SECONDS = 120.0  # a reconcile asks for many things, each with a timeout of its own; this is for what has none

Process = Callable[[Key], Awaitable[float | None]]
"""One reconcile. Returns the seconds after which it wants to be called again by itself."""


class WorkQueue:
    """All keys of this process."""

    def __init__(
        self,
        metrics: OperatorMetrics,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._queue = KeyQueue()
        self._metrics = metrics
        self._clock = clock
        self._jitter = jitter
        self._failures: dict[Key, int] = {}
        self._added = asyncio.Event()
        self._ended = asyncio.Event()
        self._open = False

    def add(self, key: Key) -> None:
        """Reconcile it now."""
        self._queue.add(key, self._clock())
        self._added.set()

    def retry_at(self, key: Key, seconds: float) -> None:
        """Reconcile it in so many seconds, if not before."""
        self._queue.add_later(key, self._clock() + seconds)
        self._added.set()

    async def work(self, process: Process, workers: int) -> None:
        """Work until cancelled, or until `drain` is through."""
        self._open = True
        try:
            async with asyncio.TaskGroup() as tasks:
                for number in range(workers):
                    tasks.create_task(self._worker(process), name=f"worker {number}")
        finally:
            self._open = False

    async def drain(self, seconds: float) -> None:
        """Start nothing more; give what runs this long to end."""
        self._open = False
        self._added.set()
        until = self._clock() + seconds
        while self._queue.running and self._clock() < until:
            self._ended.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(until - self._clock()):
                    await self._ended.wait()

    @property
    def depth(self) -> int:
        """Keys that wait for a worker."""
        return self._queue.depth

    @property
    def oldest_seconds(self) -> float:
        """How long some key has waited or been worked on. 0 while nobody works: then waiting is right."""
        return self._queue.oldest(self._clock()) if self._open else 0.0

    async def _worker(self, process: Process) -> None:
        while self._open:
            taken = self._queue.take(self._clock())
            if taken is None:
                await self._wait()
            else:
                await self._run(taken, process)

    async def _wait(self) -> None:
        due = self._queue.next_due()
        self._added.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if due is None else max(0.0, due - self._clock())):
                await self._added.wait()

    async def _run(self, taken: Taken, process: Process) -> None:
        started = self._clock()
        self._metrics.event_age.observe(max(0.0, started - taken.added_at))
        try:
            async with asyncio.timeout(RECONCILE_SECONDS):
                again = await process(taken.key)
        except asyncio.CancelledError:
            self._queue.give_back(taken)
            raise
        except Exception as error:  # noqa: BLE001  # whatever went wrong with one key is no reason to stop the others
            again = self._failed(taken.key, error)
        else:
            self._failures.pop(taken.key, None)
        self._metrics.reconcile_seconds.observe(self._clock() - started)
        if again is not None:
            self._queue.add_later(taken.key, self._clock() + again)
        self._queue.done(taken)
        self._added.set()
        self._ended.set()

    def _failed(self, key: Key, error: Exception) -> float:
        """Log, count, and say in how many seconds to try again."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self._metrics.reconcile_errors.labels(reason=type(error).__name__).inc()
        delay = self._jitter() * min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(failures, 16))
        if isinstance(error, TooManyRequests):
            delay = max(delay, error.retry_after)
        where = {"fields": {"namespace": key[0], "deployment": key[1]}}
        if isinstance(error, Conflict):  # somebody wrote at the same time: the next pass sees it
            log.info("reconcile again: %s", error, extra=where)
        elif isinstance(error, ApiError | TimeoutError):
            log.warning("reconcile failed, again in %.1f s: %s", delay, str(error) or "no end in time", extra=where)
        else:
            log.error("reconcile failed, again in %.1f s", delay, exc_info=error, extra=where)
        return delay
