import json

from octavo_runtime.server.interfaces import SamplingDefaults

CHAT = "/v1/chat/completions"


async def test_reply_has_openai_form(serve):
    reply = await (await serve()).chat()
    assert reply["id"].startswith("chatcmpl-")
    assert reply["object"] == "chat.completion"
    assert reply["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello, world!"},
            "logprobs": None,
            "finish_reason": "stop",
            "stop_reason": None,
        }
    ]
    assert reply["usage"]["completion_tokens"] == 14


async def test_messages_go_through_the_template_without_special_tokens(serve):
    served = await serve()
    await served.chat()
    assert bytes(served.engine.seen[0].prompt_token_ids) == b"user: hi\nassistant: "


async def test_stream_begins_with_role_and_ends_with_finish(serve):
    events = await (await serve()).stream(CHAT, max_tokens=2)
    choices = [event["choices"][0] for event in events]
    assert choices[0]["delta"] == {"role": "assistant", "content": ""}
    assert choices[1] == {"index": 0, "delta": {"content": "H"}, "logprobs": None, "finish_reason": None}
    assert choices[-1]["finish_reason"] == "length"
    assert {event["object"] for event in events} == {"chat.completion.chunk"}


async def test_every_choice_of_a_stream_has_its_own_role_chunk(serve):
    events = await (await serve()).stream(CHAT, n=3, max_tokens=2)
    roles = [event["choices"][0]["index"] for event in events if "role" in event["choices"][0]["delta"]]
    assert sorted(roles) == [0, 1, 2]


async def test_usage_chunk_is_last(serve):
    events = await (await serve()).stream(CHAT, max_tokens=2, stream_options={"include_usage": True})
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["completion_tokens"] == 2


async def test_logprobs_carry_bytes(serve):
    reply = await (await serve()).chat(logprobs=True, top_logprobs=2, max_tokens=1)
    entry = reply["choices"][0]["logprobs"]["content"][0]
    assert (entry["token"], entry["logprob"], entry["bytes"]) == ("H", -1.0, [72])
    assert [top["token"] for top in entry["top_logprobs"]] == ["H", "I"]


async def test_streamed_logprobs_equal_whole_ones(serve):
    served = await serve()
    whole = await served.chat(logprobs=True, top_logprobs=1)
    events = await served.stream(CHAT, logprobs=True, top_logprobs=1)
    streamed = [entry for event in events for entry in (event["choices"][0]["logprobs"] or {"content": []})["content"]]
    assert streamed == whole["choices"][0]["logprobs"]["content"]


async def test_max_completion_tokens_wins_and_default_is_the_rest_of_the_context(serve):
    served = await serve()
    await served.chat(max_tokens=9, max_completion_tokens=3)
    await served.chat()
    prompt = len(served.engine.seen[0].prompt_token_ids)
    assert [request.params.max_tokens for request in served.engine.seen] == [3, 512 - prompt]


async def test_model_defaults_fill_what_the_body_leaves_out(serve):
    served = await serve(defaults=SamplingDefaults(temperature=0.5, top_k=7, max_tokens=40))
    await served.chat()
    await served.chat(temperature=0, top_k=0)
    first, second = (request.params for request in served.engine.seen)
    assert (first.temperature, first.top_k, first.max_tokens) == (0.5, 7, 40)
    assert (second.temperature, second.top_k) == (0, 0)


async def test_continue_final_message_keeps_role_and_echoes(serve):
    served = await serve()
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Oh, "}]
    body = {"messages": messages, "continue_final_message": True, "echo": True}
    reply = await served.chat(**body)
    assert reply["choices"][0]["message"] == {"role": "assistant", "content": "Oh, Hello, world!"}
    assert bytes(served.engine.seen[0].prompt_token_ids) == b"user: hi\nassistant: Oh, "
    events = await served.stream(CHAT, **body)
    assert "".join(event["choices"][0]["delta"]["content"] for event in events) == "Oh, Hello, world!"


async def test_prompt_details_on_demand(serve):
    reply = await (await serve()).chat(prompt_logprobs=0, return_token_ids=True, max_tokens=1)
    assert len(reply["prompt_logprobs"]) == len(reply["prompt_token_ids"])
    assert reply["choices"][0]["token_ids"] == [72]
    events = await (await serve()).stream(CHAT, return_token_ids=True, max_tokens=1)
    assert events[0]["choices"][0]["prompt_token_ids"] == reply["prompt_token_ids"]


async def test_template_kwargs_reach_the_template(serve):
    served = await serve()
    await served.chat(chat_template_kwargs={"shout": True})
    assert bytes(served.engine.seen[0].prompt_token_ids).startswith(b"USER: HI")


async def test_refusal_of_the_template_names_the_message(serve):
    status, reply = await (await serve()).post(CHAT, {"messages": [{"role": "user", "content": "refuse me"}]})
    assert (status, reply["error"]["param"]) == (400, "messages[0]")


async def test_model_without_template_refuses_chat(serve):
    status, reply = await (await serve(template=None)).post(CHAT, {"messages": [{"role": "user", "content": "x"}]})
    assert (status, reply["error"]["param"]) == (400, "messages")
    assert "--chat-template" in reply["error"]["message"]


async def test_events_are_one_json_object_per_line(serve):
    served = await serve()
    served.engine.answer = lambda _request, _index: b"a\n\nb\r"
    events = await served.stream(CHAT)
    assert "".join(event["choices"][0]["delta"]["content"] for event in events) == "a\n\nb\r"
    assert json.dumps(events)
