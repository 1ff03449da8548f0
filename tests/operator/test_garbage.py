"""What lives long is looked at once in a while, and what is garbage still goes."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from octavo_operator import garbage


class Knot:
    """Refers to itself: only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_lives_is_set_aside_and_is_freed_in_a_later_round() -> None:
    knot = Knot()
    gone = weakref.ref(knot)
    garbage.set_aside()
    assert gc.get_freeze_count() > 0
    del knot
    gc.collect()
    assert gone() is not None  # set aside: a collection in between does not look at it
    garbage.set_aside()
    assert gone() is None


async def test_it_is_done_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    enough = asyncio.Event()

    def set_aside() -> None:
        rounds.append(len(rounds))
        if len(rounds) == 3:
            enough.set()

    monkeypatch.setattr(garbage, "FIRST_SECONDS", 0.001)
    monkeypatch.setattr(garbage, "set_aside", set_aside)
    task = asyncio.create_task(garbage.keep_setting_aside(0.001))
    async with asyncio.timeout(5):
        await enough.wait()
    task.cancel()
    await asyncio.wait({task})
