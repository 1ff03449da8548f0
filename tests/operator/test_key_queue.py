"""Which key is next: never two at once, nothing lost."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from octavo_operator.key_queue import KeyQueue, Taken
from octavo_operator.names import Key

A, B = ("n", "a"), ("n", "b")
KEYS = [("n", str(number)) for number in range(4)]


def take(queue: KeyQueue, now: float = 0.0) -> Taken:
    taken = queue.take(now)
    assert taken is not None
    return taken


def test_first_in_first_out_and_each_once() -> None:
    queue = KeyQueue()
    queue.add(A, 1.0)
    queue.add(B, 2.0)
    queue.add(A, 3.0)
    assert queue.depth == 2
    assert [take(queue), take(queue), queue.take(9.0)] == [Taken(A, 1.0), Taken(B, 2.0), None]


def test_a_key_that_is_worked_on_is_not_given_to_another_and_comes_again() -> None:
    queue = KeyQueue()
    queue.add(A, 1.0)
    taken = take(queue)
    queue.add(A, 2.0)
    queue.add(A, 3.0)
    assert queue.take(4.0) is None
    queue.done(taken)
    assert take(queue) == Taken(A, 2.0)


def test_work_that_was_stopped_is_begun_anew() -> None:
    queue = KeyQueue()
    queue.add(A, 1.0)
    queue.give_back(take(queue))
    assert take(queue) == Taken(A, 1.0)


def test_a_later_time_is_kept_and_the_earliest_counts() -> None:
    queue = KeyQueue()
    queue.add_later(A, 10.0)
    queue.add_later(A, 5.0)
    queue.add_later(A, 20.0)
    assert (queue.take(4.9), queue.next_due(), queue.depth) == (None, 5.0, 0)
    assert take(queue, 6.0) == Taken(A, 5.0)
    assert queue.next_due() is None


def test_a_later_time_that_comes_during_work_is_not_lost() -> None:
    queue = KeyQueue()
    queue.add(A, 0.0)
    queue.add_later(A, 1.0)
    taken = take(queue)
    assert queue.take(2.0) is None
    queue.done(taken)
    assert take(queue, 2.0) == Taken(A, 1.0)


def test_the_age_counts_waiting_and_working() -> None:
    queue = KeyQueue()
    assert queue.oldest(5.0) == 0.0
    queue.add(A, 1.0)
    assert queue.oldest(5.0) == 4.0
    taken = take(queue, 5.0)
    assert queue.oldest(8.0) == 3.0
    queue.done(taken)
    assert queue.oldest(9.0) == 0.0


class AnyOrder(RuleBasedStateMachine):
    """Adds, delays, takes, ends in any order; `owed` is what must still be worked on."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = KeyQueue()
        self.now = 0.0
        self.held: dict[Key, Taken] = {}
        self.owed: set[Key] = set()
        self.due: dict[Key, float] = {}

    @rule(key=st.sampled_from(KEYS))
    def add(self, key: Key) -> None:
        self.queue.add(key, self.now)
        self.owed.add(key)

    @rule(key=st.sampled_from(KEYS), seconds=st.floats(0, 10))
    def add_later(self, key: Key, seconds: float) -> None:
        self.queue.add_later(key, self.now + seconds)
        self.due[key] = min(self.due.get(key, float("inf")), self.now + seconds)

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        passed = {key for key, due in self.due.items() if due <= self.now}
        self.owed |= passed
        for key in passed:
            del self.due[key]
        taken = self.queue.take(self.now)
        if taken is None:
            assert self.owed <= self.held.keys()
            return
        assert taken.key not in self.held
        assert taken.key in self.owed
        assert taken.added_at <= self.now
        self.owed.discard(taken.key)
        self.held[taken.key] = taken

    @precondition(lambda self: self.held)
    @rule(data=st.data(), finished=st.booleans())
    def end(self, data: st.DataObject, finished: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        taken = self.held.pop(key)
        if finished:
            self.queue.done(taken)
        else:
            self.queue.give_back(taken)
            self.owed.add(key)

    @invariant()
    def counts_agree(self) -> None:
        assert self.queue.running == len(self.held)
        assert self.queue.oldest(self.now) >= 0.0

    def teardown(self) -> None:
        """At the end everything that is owed comes out, once."""
        for taken in self.held.values():
            self.queue.done(taken)
        self.held.clear()
        rest = set()
        while (taken := self.queue.take(float("inf"))) is not None:
            rest.add(taken.key)
            self.queue.done(taken)
        assert rest == self.owed | set(self.due)


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnyOrder = AnyOrder.TestCase
