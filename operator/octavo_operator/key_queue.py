"""`KeyQueue`: which key is worked on next. Pure: times are arguments.

A key waits at most once, is worked on by one worker at a time, and is worked on again when it was added meanwhile.
A key may also be wanted at a later time; then the earliest such time counts.
"""

import heapq
from dataclasses import dataclass

from octavo_operator.names import Key


@dataclass(frozen=True, slots=True)
class Taken:
    """A key that a worker holds until `done` or `give_back`."""

    key: Key
    added_at: float


class KeyQueue:
    """First in, first out."""

    def __init__(self) -> None:
        self._ready: dict[Key, float] = {}  # in the order of their times
        self._running: dict[Key, float] = {}  # since when
        self._again: dict[Key, float] = {}  # added while running
        self._later: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []  # of _later; holds outdated entries too

    def add(self, key: Key, now: float) -> None:
        """Wanted now."""
        place = self._again if key in self._running else self._ready
        place.setdefault(key, now)

    def add_later(self, key: Key, due: float) -> None:
        """Wanted at `due`, unless it is wanted earlier anyway."""
        if due < self._later.get(key, float("inf")):
            self._later[key] = due
            heapq.heappush(self._heap, (due, key))

    def take(self, now: float) -> Taken | None:
        """The key that has waited longest, now held by the caller. None when none is ready."""
        while self._heap and self._heap[0][0] <= now:
            due, key = heapq.heappop(self._heap)
            if self._later.get(key) == due:
                del self._later[key]
                self.add(key, due)
        if not self._ready:
            return None
        key = next(iter(self._ready))
        added_at = self._ready.pop(key)
        self._running[key] = now
        return Taken(key, added_at)

    def done(self, taken: Taken) -> None:
        """The holder is through with it."""
        del self._running[taken.key]
        if taken.key in self._again:
            self._ready[taken.key] = self._again.pop(taken.key)

    def give_back(self, taken: Taken) -> None:
        """The holder was stopped: somebody else has to begin anew."""
        self._again.setdefault(taken.key, taken.added_at)
        self.done(taken)

    def next_due(self) -> float | None:
        """When a key becomes ready by itself."""
        while self._heap and self._later.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def oldest(self, now: float) -> float:
        """Seconds that some key has been waiting or worked on; 0 when there is none."""
        started = (*self._ready.values(), *self._running.values())
        return max(0.0, now - min(started)) if started else 0.0

    @property
    def depth(self) -> int:
        """Keys that are ready."""
        return len(self._ready)

    @property
    def running(self) -> int:
        """Keys that are held."""
        return len(self._running)
