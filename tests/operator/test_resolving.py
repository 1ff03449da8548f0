"""Look-ups in the background: once per revision, tried again with pauses."""

import asyncio

import pytest

from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.resolved import ResolvedModel
from octavo_operator.reasons import Reason
from octavo_operator.resolving import Resolutions

KEY = ("default", "smollm")
MODEL = ResolvedModel(kind="hf", name="org/name", commit="a" * 40)


class Hub:
    """Answers in turn; counts."""

    def __init__(self, *answers: ResolvedModel | ModelProblem) -> None:
        self.answers = list(answers)
        self.calls = 0

    async def __call__(self) -> ResolvedModel:
        self.calls += 1
        answer = self.answers.pop(0)
        if isinstance(answer, ModelProblem):
            raise answer
        return answer


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def woken() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def resolutions(clock: Clock, woken: list[tuple[str, str]]) -> Resolutions:
    return Resolutions(woken.append, clock)


async def test_the_first_answer_wakes_the_resource(resolutions: Resolutions, woken: list[tuple[str, str]]) -> None:
    hub = Hub(MODEL)
    assert resolutions.get(KEY, "one", "", hub) is None
    await asyncio.sleep(0.01)
    assert woken == [KEY]
    assert resolutions.get(KEY, "one", "", hub) == MODEL
    assert hub.calls == 1


async def test_a_problem_is_tried_again_only_after_its_pause(resolutions: Resolutions, clock: Clock) -> None:
    hub = Hub(ModelProblem(Reason.MODEL_RATE_LIMITED, "slow down", 120.0), MODEL)
    resolutions.get(KEY, "one", "", hub)
    await asyncio.sleep(0.01)
    problem = resolutions.get(KEY, "one", "", hub)
    assert isinstance(problem, ModelProblem)
    assert resolutions.retry_in(KEY) == pytest.approx(120.0, rel=0.01)
    clock.now += 60
    resolutions.get(KEY, "one", "", hub)
    await asyncio.sleep(0.01)
    assert hub.calls == 1
    clock.now += 61
    assert isinstance(resolutions.get(KEY, "one", "", hub), ModelProblem)
    await asyncio.sleep(0.01)
    assert resolutions.get(KEY, "one", "", hub) == MODEL


async def test_pauses_grow(resolutions: Resolutions, clock: Clock) -> None:
    hub = Hub(*(ModelProblem(Reason.HUB_UNREACHABLE, "gone") for _ in range(8)))
    pauses = []
    for _ in range(8):
        resolutions.get(KEY, "one", "", hub)
        await asyncio.sleep(0.01)
        pause = resolutions.retry_in(KEY)
        assert pause is not None
        pauses.append(pause)
        clock.now += pause
    assert pauses[0] < 15
    assert 200 < pauses[-1] <= 360


async def test_a_bug_with_one_model_pauses_like_any_problem(resolutions: Resolutions) -> None:
    async def broken() -> ResolvedModel:
        raise ValueError("Port out of range")

    resolutions.get(KEY, "one", "", broken)
    await asyncio.sleep(0.01)
    problem = resolutions.get(KEY, "one", "", broken)
    assert isinstance(problem, ModelProblem)
    assert problem.reason is Reason.RECONCILE_FAILED
    assert (resolutions.retry_in(KEY) or 0) > 5


async def test_another_revision_begins_anew(resolutions: Resolutions) -> None:
    failing, good = Hub(ModelProblem(Reason.REVISION_NOT_FOUND, "no such branch")), Hub(MODEL)
    resolutions.get(KEY, "one", "", failing)
    await asyncio.sleep(0.01)
    assert resolutions.get(KEY, "two", "", good) is None
    await asyncio.sleep(0.01)
    assert resolutions.get(KEY, "two", "", good) == MODEL


async def test_another_token_is_tried_at_once_and_a_known_model_needs_none(resolutions: Resolutions) -> None:
    hub = Hub(ModelProblem(Reason.MODEL_ACCESS_DENIED, "403"), MODEL)
    resolutions.get(KEY, "one", "old", hub)
    await asyncio.sleep(0.01)
    assert isinstance(resolutions.get(KEY, "one", "old", hub), ModelProblem)
    assert resolutions.get(KEY, "one", "new", hub) is None
    await asyncio.sleep(0.01)
    assert resolutions.get(KEY, "one", "new", hub) == MODEL
    assert resolutions.get(KEY, "one", "newer", hub) == MODEL
    assert hub.calls == 2


async def test_a_forgotten_look_up_is_cancelled(resolutions: Resolutions, woken: list[tuple[str, str]]) -> None:
    started = asyncio.Event()

    async def never() -> ResolvedModel:
        started.set()
        await asyncio.sleep(60)
        return MODEL

    resolutions.get(KEY, "one", "", never)
    await started.wait()
    resolutions.forget(KEY)
    await asyncio.sleep(0.01)
    assert resolutions.retry_in(KEY) is None
    assert woken == [KEY]
