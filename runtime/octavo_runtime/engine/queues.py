"""The scheduler's queues, ordered by `SequenceGroup.order` under every policy.

`GroupQueue` (waiting, swapped) is a heap: O(log n) to add and take, O(1) to look at the head, lazy deletion, so that no
step's cost grows with the number waiting. `RunningList` is sorted and short (at most max_num_seqs).
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from octavo_runtime.engine.sequence import GroupState, SequenceGroup


class GroupQueue:
    """Groups that wait for one thing; those that left `state` meanwhile are skipped and thrown out later."""

    __slots__ = ("_heap", "_num_groups", "_state")

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self._heap: list[tuple[tuple[int, int], SequenceGroup]] = []
        self._num_groups = 0

    def __len__(self) -> int:
        return self._num_groups

    def push(self, group: SequenceGroup) -> None:
        """Take `group` in and set its state."""
        group.state = self._state
        self._num_groups += 1
        heappush(self._heap, (group.order, group))

    def peek(self) -> SequenceGroup | None:
        """The first group, or None."""
        heap = self._heap
        while heap and heap[0][1].state is not self._state:
            heappop(heap)
        return heap[0][1] if heap else None

    def pop(self) -> SequenceGroup:
        """Remove and return the first group; the caller sets its new state."""
        if self.peek() is None:
            raise IndexError("pop from an empty queue")
        self._num_groups -= 1
        return heappop(self._heap)[1]

    def discard(self, group: SequenceGroup, state: GroupState) -> None:
        """Let a group leave from anywhere in the queue into `state`, which is not the queue's own."""
        group.state = state
        self._num_groups -= 1
        if len(self._heap) > 2 * self._num_groups + 64:  # amortized: half of the entries are dead
            self._heap = [entry for entry in self._heap if entry[1].state is self._state]
            heapify(self._heap)


def _order(group: SequenceGroup) -> tuple[int, int]:
    return group.order


class RunningList:
    """Running groups, first to run first; the last one is the first victim of preemption."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: list[SequenceGroup] = []

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[SequenceGroup]:
        return iter(self._groups)

    def __reversed__(self) -> Iterator[SequenceGroup]:
        return reversed(self._groups)

    def add(self, group: SequenceGroup) -> None:
        group.state = GroupState.RUNNING
        insort(self._groups, group, key=_order)

    def remove(self, group: SequenceGroup) -> None:
        """Take `group` out; orders are unique, so the search finds it."""
        del self._groups[bisect_left(self._groups, group.order, key=_order)]

    def last(self) -> SequenceGroup:
        return self._groups[-1]
