"""Random bodies against the server over a fake engine; tests/system/test_fuzz.py sends them to a real one."""

import pytest

from fuzz_bodies import complaint, fuzz_bodies


async def check(serve, count, seed):
    served = await serve()
    wrong = []
    refused = 0
    for body in fuzz_bodies(count, seed, context=512):
        headers = {"Content-Type": "application/json"}
        async with served.client.post(body.path, data=body.data, headers=headers) as response:
            text = await response.text()
        refused += response.status != 200
        if problem := complaint(body, response.status, text):
            wrong.append((problem, body.path, body.field, body.data[:200], response.status, text[:300]))
    assert not wrong, f"{len(wrong)} of {count}: {wrong[:5]}"
    assert refused > count / 2
    assert served.engine.num_requests == 0
    async with served.client.get("/load") as response:
        assert await response.json() == {"server_load": 0}
    await served.complete()


async def test_bad_bodies_get_4xx_that_name_the_field(serve):
    await check(serve, 500, seed=1)


@pytest.mark.slow
async def test_ten_thousand_bodies(serve):
    await check(serve, 10_000, seed=2)


def test_same_seed_gives_the_same_bodies():
    assert list(fuzz_bodies(50, seed=3)) == list(fuzz_bodies(50, seed=3))
