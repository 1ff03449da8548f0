import asyncio

import pytest

from octavo_operator.model.bounded import map_bounded


async def test_results_come_in_the_order_of_the_items() -> None:
    async def work(item: int) -> int:
        await asyncio.sleep((5 - item) / 1000)
        return item * 2

    assert await map_bounded(3, work, range(5)) == [0, 2, 4, 6, 8]


async def test_no_more_than_the_limit_run_at_once() -> None:
    running = most = 0

    async def work(_: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await map_bounded(3, work, range(20))
    assert most == 3


async def test_the_first_failure_ends_the_others_and_is_raised_itself() -> None:
    ended = []

    async def work(item: int) -> None:
        if item == 1:
            raise LookupError("one")
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(item)

    with pytest.raises(LookupError, match="one"):
        await map_bounded(4, work, range(4))
    assert sorted(ended) == [0, 2, 3]


async def test_nothing_to_do_gives_nothing() -> None:
    async def work(item: int) -> int:
        return item

    assert await map_bounded(2, work, []) == []
