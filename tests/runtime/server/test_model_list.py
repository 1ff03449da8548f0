async def test_every_served_name_is_listed(serve):
    served = await serve()
    async with served.client.get("/v1/models") as response:
        reply = await response.json()
    assert [card["id"] for card in reply["data"]] == ["tiny", "alias"]
    assert reply["data"][0]["max_model_len"] == 512


async def test_one_model_or_404(serve):
    served = await serve()
    async with served.client.get("/v1/models/alias") as response:
        assert (await response.json())["id"] == "alias"
    async with served.client.get("/v1/models/org/unknown") as response:
        assert response.status == 404
        assert (await response.json())["error"]["param"] == "model"


async def test_alias_is_accepted_and_unknown_model_is_404(serve):
    served = await serve()
    assert (await served.complete(model="alias"))["model"] == "tiny"
    status, reply = await served.post("/v1/chat/completions", {"model": "gpt-4", "messages": []})
    assert (status, reply["error"]["param"], reply["error"]["type"]) == (404, "model", "NotFoundError")
