async def test_tokenize_text(serve):
    reply = (await (await serve()).post("/tokenize", {"prompt": "hé", "return_token_strs": True}))[1]
    assert reply["tokens"] == [256, 104, 195, 169]
    assert (reply["count"], reply["max_model_len"]) == (4, 512)
    assert reply["token_strs"][:2] == ["<bos>", "h"]


async def test_tokenize_without_special_tokens(serve):
    reply = (await (await serve()).post("/tokenize", {"prompt": "a", "add_special_tokens": False}))[1]
    assert reply == {"count": 1, "max_model_len": 512, "tokens": [97], "token_strs": None}


async def test_tokenize_messages_as_chat_would(serve):
    reply = (await (await serve()).post("/tokenize", {"messages": [{"role": "user", "content": "x"}]}))[1]
    assert bytes(reply["tokens"]) == b"user: x\nassistant: "


async def test_tokenize_longer_than_the_context_is_fine(serve):
    status, reply = await (await serve()).post("/tokenize", {"prompt": "x" * 20_000})
    assert (status, reply["count"]) == (200, 20_001)


async def test_detokenize_gives_the_text_back(serve):
    served = await serve()
    assert (await served.post("/detokenize", {"tokens": [104, 195, 169]}))[1] == {"prompt": "hé"}


async def test_wrong_bodies_name_the_field(serve):
    served = await serve()
    for path, body, param in (
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": "a", "messages": []}, "prompt"),
        ("/tokenize", {"prompt": 1}, "prompt"),
        ("/tokenize", {"messages": []}, "messages"),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": [1, 999]}, "tokens"),
        ("/detokenize", {"tokens": "x"}, "tokens"),
    ):
        status, reply = await served.post(path, body)
        assert (status, reply["error"]["param"]) == (400, param)
