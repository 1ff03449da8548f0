"""`Scraper`: asks the serving pods how they are, and wakes a resource when something changed that it waits for.

Given targets per resource by each reconcile; keeps the last answer of each pod. Asks often only where somebody waits
(a pod that starts, drains, or carries a load that scales), rarely elsewhere, so that a thousand resources cost little.
Also tells a pod to drain, or to go on, until its answer agrees with its mark. Knows nothing of Kubernetes.
"""

import asyncio
import heapq
import logging
import random
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Self

import aiohttp

from octavo_operator.autoscaling.answers import is_new_load, is_news, is_progress, read_status, with_load
from octavo_operator.autoscaling.demand import FRESH_SECONDS
from octavo_operator.autoscaling.metrics_text import parse
from octavo_operator.autoscaling.samples import TimedSample
from octavo_operator.autoscaling.targets import Target, agrees, period
from octavo_operator.names import Key
from octavo_operator.observed import RuntimeView

TIMEOUT_SECONDS = 2.0
CONCURRENCY = 32
PROGRESS_SECONDS = 5.0  # at most so often is mere progress told
STATUS_SECONDS = 30.0  # a pod whose load is read is asked for its status so often
KEEP_ALIVE_SECONDS = 90.0  # longer than the longest pause between two questions
LONGEST_BODY = 4 << 20
JITTER = 0.1  # of a period: a thousand pods are not asked at once

_LOG = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Entry:
    """What is known of one pod."""

    key: Key
    target: Target
    view: RuntimeView | None = None
    sample: TimedSample | None = None
    failures: int = 0
    told_at: float = 0.0  # when mere progress was last told
    is_lost: bool = False  # its sample grew too old, and that was told
    is_dropped: bool = False
    ticket: int = 0  # of its place in the queue; an older place is void


class Scraper:
    """All pods of all resources, over one HTTP session."""

    def __init__(
        self,
        wake: Callable[[Key], None],
        clock: Callable[[], float] = time.time,
        session: aiohttp.ClientSession | None = None,
    ) -> None:
        self._wake = wake
        self._clock = clock
        self._session = session
        self._owns_session = session is None
        self._entries: dict[str, _Entry] = {}
        self._by_key: dict[Key, dict[str, _Entry]] = {}
        self._due: list[tuple[float, int, _Entry]] = []
        self._tickets: Iterator[int] = count(1)
        self._changed = asyncio.Event()
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._polls: set[asyncio.Task[None]] = set()
        self._loop_task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Begin to ask."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=_no_verification()),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        self._loop_task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop asking."""
        tasks = [*self._polls, *([self._loop_task] if self._loop_task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None and self._owns_session:
            await self._session.close()
            self._session = None

    def view(self, uid: str) -> RuntimeView | None:
        """The last answer of the pod."""
        entry = self._entries.get(uid)
        return entry.view if entry else None

    def sample(self, uid: str) -> TimedSample | None:
        """The last load of the pod."""
        entry = self._entries.get(uid)
        return entry.sample if entry else None

    def watch(self, key: Key, targets: Iterable[Target]) -> None:
        """These pods of the resource from now on, and no others."""
        wanted = {target.uid: target for target in targets}
        known = self._by_key.pop(key, {})
        for uid in known.keys() - wanted.keys():
            known[uid].is_dropped = True
            del self._entries[uid]
        current = {uid: self._watched(key, target, known.get(uid)) for uid, target in wanted.items()}
        if current:
            self._by_key[key] = current

    def forget(self, key: Key) -> None:
        """The resource is gone."""
        self.watch(key, ())

    def forget_all(self) -> None:
        """Ask and steer no pod any more."""
        for key in list(self._by_key):
            self.forget(key)

    async def drain(self, target: Target, on: bool) -> bool:
        """Tell the pod to drain, or to go on. Best effort: whether it said yes."""
        if not target.admin_key:
            return False
        headers = {"Authorization": f"Bearer {target.admin_key}"}
        try:
            await self._request("POST" if on else "DELETE", target.url("/drain"), headers)
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            _LOG.debug("pod %s did not take its drain: %r", target.name, error)
            return False
        return True

    def _watched(self, key: Key, target: Target, known: _Entry | None) -> _Entry:
        entry = known or _Entry(key, target)
        is_new = known is None or known.target != target
        entry.target = target
        if is_new:
            self._entries[target.uid] = entry
            self._schedule(entry, random.uniform(0, JITTER))
        return entry

    def _schedule(self, entry: _Entry, seconds: float) -> None:
        entry.ticket = next(self._tickets)
        due = asyncio.get_running_loop().time() + seconds
        heapq.heappush(self._due, (due, entry.ticket, entry))
        if self._due[0][1] == entry.ticket:
            self._changed.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            wait = self._due[0][0] - loop.time() if self._due else None
            if wait is not None and wait <= 0:
                _, ticket, entry = heapq.heappop(self._due)
                if not entry.is_dropped and entry.ticket == ticket:
                    await self._slots.acquire()
                    poll = asyncio.create_task(self._poll(entry, ticket))
                    self._polls.add(poll)
                    poll.add_done_callback(self._polls.discard)
                continue
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _poll(self, entry: _Entry, ticket: int) -> None:
        """One round of questions, then the next one is planned (unless a change of the target already did)."""
        try:
            await self._ask(entry)
            entry.failures = 0
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            entry.failures += 1
            _LOG.debug("pod %s did not answer: %r", entry.target.name, error)
        finally:
            self._slots.release()
        if entry.is_dropped:
            return
        self._tell_lost(entry)
        if entry.ticket == ticket:
            seconds = period(entry.target, entry.view, entry.sample.sample if entry.sample else None, entry.failures)
            self._schedule(entry, seconds * random.uniform(1 - JITTER, 1 + JITTER))

    async def _ask(self, entry: _Entry) -> None:
        target, now = entry.target, self._clock()
        reads_load = target.auto and not target.is_close
        is_due = entry.view is None or now - entry.view.at >= STATUS_SECONDS or not agrees(target, entry.view)
        if not reads_load or is_due:
            await self._ask_status(entry, target)
        if reads_load:
            await self._ask_load(entry, target)

    async def _ask_status(self, entry: _Entry, target: Target) -> None:
        at = self._clock()  # before: what the answer says is at least as new
        before = entry.view
        body = await self._request("GET", target.url("/status"))
        after = read_status(body, at, before.kv_cache_usage if before else 0.0)
        if entry.view is not before:
            return  # another round was quicker
        entry.view = after
        if is_news(before, after, target.draining) or (
            is_progress(before, after, target.draining) and at - entry.told_at >= PROGRESS_SECONDS
        ):
            self._tell(entry)
        if not agrees(target, after):
            await self.drain(target, target.draining)

    async def _ask_load(self, entry: _Entry, target: Target) -> None:
        at = self._clock()
        body = await self._request("GET", target.url("/metrics"))
        sample = parse(body.decode("utf-8", "replace"))
        before = entry.sample
        entry.sample = TimedSample(at, sample)
        if entry.view is not None:
            entry.view = with_load(entry.view, sample)
        was_lost, entry.is_lost = entry.is_lost, False
        if was_lost or is_new_load(before.sample if before else None, sample):
            self._tell(entry)

    def _tell_lost(self, entry: _Entry) -> None:
        """Once, when the load has not been read for so long that it no longer counts."""
        if entry.sample is None or entry.is_lost or not entry.target.auto:
            return
        if self._clock() - entry.sample.at > FRESH_SECONDS:
            entry.is_lost = True
            self._tell(entry)

    def _tell(self, entry: _Entry) -> None:
        if not entry.is_dropped:
            entry.told_at = self._clock()
            self._wake(entry.key)

    async def _request(self, method: str, url: str, headers: dict[str, str] | None = None) -> bytes:
        """The body of a 200. Follows no redirect: it would lead the operator anywhere."""
        if self._session is None:
            raise ValueError("the scraper is not started")
        async with self._session.request(method, url, headers=headers, allow_redirects=False) as response:
            body = bytearray()
            async for chunk in response.content.iter_chunked(1 << 16):
                body += chunk
                if len(body) > LONGEST_BODY:
                    raise ValueError(f"an answer of more than {LONGEST_BODY} bytes")
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            return bytes(body)


def _no_verification() -> ssl.SSLContext:
    """Pods are asked by address, which no certificate names; the answers are not secret, the admin key is per resource."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
