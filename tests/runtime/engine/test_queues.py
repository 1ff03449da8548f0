from collections.abc import Callable

import pytest

from octavo_runtime.engine.config import SchedulerConfig, SchedulingPolicy
from octavo_runtime.engine.queues import GroupQueue, RunningList
from octavo_runtime.engine.sequence import GroupState, SequenceGroup

NewGroup = Callable[..., SequenceGroup]


def test_a_group_that_comes_back_goes_before_those_that_arrived_later(new_group: NewGroup) -> None:
    queue = GroupQueue(GroupState.WAITING)
    first, second = new_group([1], arrival=1), new_group([1], arrival=2)
    queue.push(second)
    queue.push(first)
    assert [queue.pop(), queue.pop()] == [first, second]


def test_priority_goes_before_arrival(new_group: NewGroup) -> None:
    config = SchedulerConfig(policy=SchedulingPolicy.PRIORITY)
    queue = GroupQueue(GroupState.WAITING)
    late = new_group([1], arrival=2, priority=-1, config=config)
    queue.push(new_group([1], arrival=1, priority=0, config=config))
    queue.push(late)
    assert queue.peek() is late


def test_a_discarded_group_is_neither_counted_nor_seen(new_group: NewGroup) -> None:
    queue = GroupQueue(GroupState.WAITING)
    groups = [new_group([1]) for _ in range(3)]
    for group in groups:
        queue.push(group)
    queue.discard(groups[0], GroupState.FINISHED)
    assert len(queue) == 2
    assert queue.peek() is groups[1]


def test_discarded_groups_do_not_pile_up(new_group: NewGroup) -> None:
    queue = GroupQueue(GroupState.WAITING)
    queue.push(new_group([1], arrival=0))
    for _ in range(1000):
        group = new_group([1])
        queue.push(group)
        queue.discard(group, GroupState.FINISHED)
    assert len(queue) == 1
    assert len(queue._heap) < 100


def test_an_empty_queue_has_no_head_and_nothing_to_pop() -> None:
    queue = GroupQueue(GroupState.SWAPPED)
    assert queue.peek() is None
    with pytest.raises(IndexError):
        queue.pop()


def test_running_groups_stay_in_order_and_leave_from_anywhere(new_group: NewGroup) -> None:
    running = RunningList()
    groups = [new_group([1], arrival=number) for number in range(5)]
    for number in (3, 0, 4, 1, 2):
        running.add(groups[number])
    running.remove(groups[1])
    assert list(running) == [groups[0], groups[2], groups[3], groups[4]]
    assert running.last() is groups[4]
    assert groups[0].state is GroupState.RUNNING
