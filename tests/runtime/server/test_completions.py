import pytest

from octavo_runtime.server.testing import EOS


async def test_reply_has_openai_form(serve):
    reply = await (await serve()).complete(max_tokens=5)
    assert reply["id"].startswith("cmpl-")
    assert reply["object"] == "text_completion"
    assert reply["model"] == "tiny"
    assert reply["choices"] == [
        {"index": 0, "text": "Hello", "logprobs": None, "finish_reason": "length", "stop_reason": None}
    ]
    assert reply["usage"] == {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}


async def test_stop_at_eos_leaves_eos_out_of_text(serve):
    choice = (await (await serve()).complete())["choices"][0]
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("Hello, world!", "stop", None)


async def test_default_max_tokens_is_16(serve):
    reply = await (await serve()).complete(ignore_eos=True)
    assert reply["usage"]["completion_tokens"] == 16


async def test_stop_string_cuts_text_and_aborts_the_sequence(serve):
    served = await serve()
    choice = (await served.complete(stop=["wor", "x"]))["choices"][0]
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("Hello, ", "stop", "wor")
    assert served.engine.aborted[0][1] == 0
    assert not served.engine.requests


async def test_stop_string_may_stay_in_the_text(serve):
    choice = (await (await serve()).complete(stop="wor", include_stop_str_in_output=True))["choices"][0]
    assert choice["text"] == "Hello, wor"


async def test_several_prompts_times_n_are_numbered_prompt_major(serve):
    served = await serve()
    served.engine.answer = lambda request, index: f"{request.prompt_token_ids[1] - 97}{index}".encode()
    reply = await served.complete(prompt=["a", "b"], n=2)
    assert [(choice["index"], choice["text"]) for choice in reply["choices"]] == [
        (0, "00"),
        (1, "01"),
        (2, "10"),
        (3, "11"),
    ]
    assert reply["usage"]["prompt_tokens"] == 4


async def test_token_id_prompts_are_taken_as_they_are(serve):
    served = await serve()
    await served.complete(prompt=[104, 105])
    await served.complete(prompt=[[104], [105, 106]])
    assert [request.prompt_token_ids for request in served.engine.seen] == [[104, 105], [104], [105, 106]]


async def test_echo_puts_the_prompt_first(serve):
    served = await serve()
    assert (await served.complete(echo=True, max_tokens=2))["choices"][0]["text"] == "hiHe"
    events = await served.stream("/v1/completions", echo=True, max_tokens=2)
    assert "".join(event["choices"][0]["text"] for event in events) == "hiHe"


async def test_echo_with_logprobs_covers_prompt_and_answer(serve):
    logprobs = (await (await serve()).complete(echo=True, logprobs=1, max_tokens=2))["choices"][0]["logprobs"]
    assert logprobs["tokens"] == ["<bos>", "h", "i", "H", "e"]
    assert logprobs["token_logprobs"] == [None, -1.0, -1.0, -1.0, -1.0]
    assert logprobs["text_offset"] == [0, 0, 1, 2, 3]
    assert logprobs["top_logprobs"][:2] == [None, {"h": -1.0}]


async def test_echo_with_max_tokens_0_gives_the_prompt_alone(serve):
    reply = await (await serve()).complete(echo=True, max_tokens=0, logprobs=0)
    assert reply["choices"][0]["text"] == "hi"
    assert reply["choices"][0]["finish_reason"] == "length"
    assert reply["choices"][0]["logprobs"]["tokens"] == ["<bos>", "h", "i"]
    assert reply["usage"]["completion_tokens"] == 0


async def test_best_of_returns_the_likeliest(serve):
    served = await serve()
    served.engine.answer = lambda _request, index: b"x" * (5 - index)  # the shortest has the highest logprob
    reply = await served.complete(n=2, best_of=4)
    assert [choice["text"] for choice in reply["choices"]] == ["xx", "xxx"]
    assert [choice["index"] for choice in reply["choices"]] == [0, 1]


async def test_beams_keep_the_engines_order(serve):
    served = await serve()
    served.engine.answer = lambda _request, index: b"x" * (5 - index)
    reply = await served.complete(n=2, use_beam_search=True, temperature=0)
    assert [choice["text"] for choice in reply["choices"]] == ["xxxxx", "xxxx"]


async def test_prompt_logprobs_and_token_ids_are_added_on_demand(serve):
    choice = (await (await serve()).complete(prompt_logprobs=1, return_token_ids=True, max_tokens=20))["choices"][0]
    assert choice["prompt_logprobs"][0] is None
    assert choice["prompt_logprobs"][1] == {"104": {"logprob": -1.0, "rank": 1, "decoded_token": "h"}}
    assert choice["prompt_token_ids"] == [256, 104, 105]
    assert choice["token_ids"] == [*b"Hello, world!", EOS]


async def test_tokens_as_token_ids(serve):
    reply = await (await serve()).complete(logprobs=0, return_tokens_as_token_ids=True, max_tokens=1)
    assert reply["choices"][0]["logprobs"]["tokens"] == ["token_id:72"]


async def test_stream_options_add_usage(serve):
    served = await serve()
    events = await served.stream("/v1/completions", max_tokens=3, stream_options={"include_usage": True})
    assert events[-1]["choices"] == []
    assert events[-1]["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
    assert all("usage" not in event for event in events[:-1])
    options = {"include_usage": True, "continuous_usage_stats": True}
    events = await served.stream("/v1/completions", max_tokens=3, stream_options=options)
    assert [event["usage"]["completion_tokens"] for event in events] == [1, 2, 3, 3]


async def test_prompt_tokens_details_come_with_the_flag(serve):
    served = await serve(enable_prompt_tokens_details=True)
    assert (await served.complete(prompt="abc"))["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}


async def test_stream_interval_joins_tokens_but_not_the_first(serve):
    served = await serve(stream_interval=4)
    events = await served.stream("/v1/completions")
    texts = [event["choices"][0]["text"] for event in events]
    assert texts == ["H", "ello", ", wo", "rld!", ""]


@pytest.mark.parametrize("seed", [-1, 0, 7, 2**63 - 1])
async def test_seed_minus_one_means_none(serve, seed):
    served = await serve()
    await served.complete(seed=seed)
    assert served.engine.seen[0].params.seed == (None if seed == -1 else seed)


async def test_bad_words_are_encoded_in_both_forms(serve):
    served = await serve()
    await served.complete(bad_words=["ab"])
    assert served.engine.seen[0].params.bad_words_token_ids == ((97, 98), (32, 97, 98))


async def test_prompt_is_truncated_from_the_left_or_right(serve):
    served = await serve()
    await served.complete(prompt="abcdef", truncate_prompt_tokens=2)
    await served.complete(prompt="abcdef", truncate_prompt_tokens=2, truncation_side="right")
    await served.complete(prompt="x" * 2000, truncate_prompt_tokens=-1, max_tokens=12)
    lengths = [request.prompt_token_ids for request in served.engine.seen]
    assert lengths[:2] == [[101, 102], [256, 97]]
    assert len(lengths[2]) == 500


async def test_priority_comes_from_body_or_header(serve):
    served = await serve()
    await served.complete(priority=-3)
    await served.post("/v1/completions", {"prompt": "hi"}, headers={"X-Vllm-Priority": "9"})
    assert [request.priority for request in served.engine.seen] == [-3, 9]
