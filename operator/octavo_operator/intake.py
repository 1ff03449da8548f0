"""`Intake`: where every watch event and every list comes in. Feeds the cache, and wakes whom the news concerns.

Called by `handlers.py` (watches), `relist.py` (lists) and `kube.py` (own writes: the cache learns, nobody is woken).
"""

import random
import time
from collections.abc import Callable
from typing import Protocol

from octavo_operator.cache import Cache
from octavo_operator.kube_client import ObjectList, Raw, version_of
from octavo_operator.names import Key
from octavo_operator.wakeup import keys_to_wake


class Queue(Protocol):
    """Who is told of keys."""

    def add(self, key: Key) -> None:
        """This one concerns something new."""
        ...

    def retry_at(self, key: Key, seconds: float) -> None:
        """This one is to be looked at in so many seconds."""
        ...


class Intake:
    """The way from objects to keys."""

    def __init__(self, cache: Cache, queue: Queue, clock: Callable[[], float] = time.monotonic) -> None:
        self._cache = cache
        self._queue = queue
        self._clock = clock
        self._last_event = clock()

    def happened(self, event: str | None, raw: Raw) -> None:
        """A watch event: ADDED, MODIFIED, DELETED, or None for an object of the watch's first list."""
        self._last_event = self._clock()
        if event == "DELETED":
            metadata = raw["metadata"]
            gone = self._cache.forget(raw["kind"], metadata.get("namespace"), metadata["name"], version_of(raw))
            if gone is not None:
                self._wake(gone)
            return
        before = self._cache.relabelled(raw)
        if self._cache.see(raw):
            self._wake(raw)
            if before is not None:
                self._wake(before)

    def listed(self, kind: str, found: ObjectList, namespace: str | None = None) -> None:
        """All objects of a kind."""
        for raw in self._cache.replace_all(kind, found, namespace):
            self._wake(raw)

    def wake_all(self, within_seconds: float) -> None:
        """Every LLMDeployment, news or not, spread over so many seconds."""
        keys = self._cache.keys()
        for key in keys:
            self._queue.retry_at(key, random.uniform(0.0, within_seconds))

    @property
    def quiet_seconds(self) -> float:
        """Since the last event of any watch."""
        return self._clock() - self._last_event

    def _wake(self, raw: Raw) -> None:
        for key in keys_to_wake(raw, self._cache):
            self._queue.add(key)
