"""The prefix cache is forgotten for those who have a key, while the engine is there."""

PATH = "/reset_prefix_cache"


async def test_a_reset_reaches_the_engine(serve):
    served = await serve()
    async with served.client.post(PATH) as response:
        assert (response.status, await response.read()) == (200, b"")
    assert served.engine.num_resets == 1


async def test_a_reset_needs_a_key_where_there_are_keys(serve):
    served = await serve(api_keys=("key",), root_path="/llm")
    for path in (PATH, "/llm" + PATH):
        async with served.client.post(path) as response:
            assert response.status == 401
        async with served.client.post(path, headers={"Authorization": "Bearer key"}) as response:
            assert response.status == 200
    assert served.engine.num_resets == 2


async def test_a_reset_is_refused_while_the_model_loads_or_is_gone(serve):
    served = await serve()
    served.engine.ready = None
    async with served.client.post(PATH) as response:
        assert response.status == 503
    served.engine.die()
    async with served.client.post(PATH) as response:
        assert response.status == 500
    assert served.engine.num_resets == 0
