"""How long a fetch waits, over a clock of the test's own."""

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.patience import Patience, TryLaterError
from octavo_runtime.start_state import Problem, StartState


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Attempts:
    """Fails with each of `errors`, then gives 7."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.count = 0

    async def __call__(self) -> int:
        self.count += 1
        if self.errors:
            raise self.errors.pop(0)
        return 7


def limited(seconds: float | None = None) -> TryLaterError:
    return TryLaterError(StartCause.MODEL_RATE_LIMITED, "The hub limits the rate.", seconds)


def unreachable() -> TryLaterError:
    return TryLaterError(StartCause.HUB_UNREACHABLE, "The hub is away.")


def patience(clock: Clock, state: StartState, deadline: float | None = None) -> Patience:
    return Patience(state, deadline, clock, clock.sleep)


async def test_a_wait_is_as_long_as_the_hub_asks_and_is_told_meanwhile() -> None:
    clock, state = Clock(), StartState("m")
    seen: list[Problem | None] = []

    async def sleep(seconds: float) -> None:
        seen.append(state.problem)
        await clock.sleep(seconds)

    assert await Patience(state, None, clock, sleep).run(Attempts(limited(30), limited(5))) == 7
    assert 30 <= clock.slept[0] <= 31
    assert 5 <= clock.slept[1] <= 6
    assert seen == [Problem(StartCause.MODEL_RATE_LIMITED, "The hub limits the rate.")] * 2
    assert state.problem is None


async def test_waits_grow_when_nobody_says_how_long() -> None:
    clock = Clock()
    await patience(clock, StartState("m"), 1e9).run(Attempts(*[unreachable() for _ in range(9)]))
    assert clock.slept[0] <= 1
    assert 30 <= clock.slept[-1] <= 60


async def test_it_gives_up_at_the_deadline_with_the_cause() -> None:
    clock = Clock()
    with pytest.raises(StartError, match="limits the rate") as caught:
        await patience(clock, StartState("m"), clock.now + 60).run(Attempts(limited(30), limited(45)))
    assert caught.value.cause is StartCause.MODEL_RATE_LIMITED
    assert clock.now <= 160


async def test_without_a_deadline_a_person_is_not_kept_waiting() -> None:
    clock = Clock()
    with pytest.raises(StartError) as caught:
        await patience(clock, StartState("m")).run(Attempts(*[unreachable() for _ in range(99)]))
    assert caught.value.cause is StartCause.HUB_UNREACHABLE
    assert clock.now <= 120


async def test_bytes_that_come_make_it_patient_again() -> None:
    clock, state = Clock(), StartState("m")
    made = patience(clock, state)

    async def crawling() -> int:
        made.progressed()
        if clock.now < 1000:
            raise unreachable()
        return 7

    assert await made.run(crawling) == 7
    assert max(clock.slept) <= 1


async def test_what_will_not_pass_is_not_tried_again() -> None:
    attempts = Attempts(StartError(StartCause.MODEL_NOT_FOUND, "There is none."))
    with pytest.raises(StartError, match="There is none"):
        await patience(Clock(), StartState("m")).run(attempts)
    assert attempts.count == 1
