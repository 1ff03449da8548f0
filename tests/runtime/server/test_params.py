import pytest

from octavo_runtime.errors import InvalidRequestError
from octavo_runtime.server.config import ServerConfig
from octavo_runtime.server.interfaces import TextLayer
from octavo_runtime.server.params import check_cache_salt, sampling_params
from octavo_runtime.server.schema import CompletionBody
from octavo_runtime.server.testing import VOCAB_SIZE, ByteTokenizer

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
WRONG = [
    ({"temperature": 2.5}, "temperature"),
    ({"temperature": -0.1}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"top_p": 0}, "top_p"),
    ({"top_p": 1.01}, "top_p"),
    ({"top_k": -2}, "top_k"),
    ({"top_k": 1.5}, "top_k"),
    ({"min_p": 2}, "min_p"),
    ({"n": 0}, "n"),
    ({"n": 16385}, "n"),
    ({"n": 33}, "n"),
    ({"n": 2, "temperature": 0}, "n"),
    ({"n": 2, "best_of": 1}, "best_of"),
    ({"best_of": 40}, "best_of"),
    ({"best_of": 2, "stream": True}, "best_of"),
    ({"presence_penalty": 3}, "presence_penalty"),
    ({"frequency_penalty": -3}, "frequency_penalty"),
    ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"length_penalty": 2000}, "length_penalty"),
    ({"length_penalty": -1e300}, "length_penalty"),
    ({"n": 129, "use_beam_search": True}, "n"),
    ({"best_of": 129, "use_beam_search": True}, "best_of"),
    ({"seed": 2**63}, "seed"),
    ({"seed": 1.5}, "seed"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_tokens": 10**400}, "max_tokens"),
    ({"max_tokens": 5000}, "input_tokens"),
    ({"min_tokens": -1}, "min_tokens"),
    ({"min_tokens": 9, "max_tokens": 8}, "min_tokens"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
    ({"stop": ""}, "stop"),
    ({"stop": [1]}, "stop[0]"),
    ({"stop_token_ids": ["x"]}, "stop_token_ids[0]"),
    ({"stop_token_ids": [1] * 129}, "stop_token_ids"),
    ({"logit_bias": {"x": 1}}, "logit_bias"),
    ({"logit_bias": {str(VOCAB_SIZE): 1}}, "logit_bias"),
    ({"logit_bias": {"-1": 1}}, "logit_bias"),
    ({"logit_bias": {"1": "x"}}, "logit_bias"),
    ({"logit_bias": [1]}, "logit_bias"),
    ({"allowed_token_ids": []}, "allowed_token_ids"),
    ({"allowed_token_ids": [VOCAB_SIZE]}, "allowed_token_ids"),
    ({"bad_words": [" "]}, "bad_words[0]"),
    ({"bad_words": ["x"] * 257}, "bad_words"),
    ({"bad_words": ["x", "x" * 129]}, "bad_words[1]"),
    ({"prompt_logprobs": 21}, "prompt_logprobs"),
    ({"prompt_logprobs": 1, "stream": True}, "prompt_logprobs"),
    ({"use_beam_search": True, "stream": True}, "use_beam_search"),
    ({"use_beam_search": True, "n": 2, "logprobs": True}, "logprobs"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"stream": "yes"}, "stream"),
    ({"stream_interval": 0}, "stream_interval"),
    ({"truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
    ({"truncate_prompt_tokens": 100_000}, "truncate_prompt_tokens"),
    ({"truncation_side": "up"}, "truncation_side"),
    ({"cache_salt": ""}, "cache_salt"),
    ({"cache_salt": "a/b"}, "cache_salt"),
    ({"request_id": "x" * 200}, "request_id"),
    ({"priority": "high"}, "priority"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"response_format": "json"}, "response_format"),
    ({"structured_outputs": {"regex": "a"}}, "structured_outputs"),
    ({"guided_json": {}}, "guided_json"),
    ({"lora_request": "x"}, "lora_request"),
]
WRONG_COMPLETIONS = [
    ({"prompt": None}, "prompt"),
    ({"prompt": []}, "prompt"),
    ({"prompt": 7}, "prompt"),
    ({"prompt": ["a", 1]}, "prompt"),
    ({"prompt": [[]]}, "prompt"),
    ({"prompt": ["a", ""], "add_special_tokens": False}, "prompt[1]"),
    ({"prompt": [VOCAB_SIZE]}, "prompt"),
    ({"prompt": [-1]}, "prompt"),
    ({"prompt": [[1], [1, -1]]}, "prompt[1]"),
    ({"prompt": [[1], [1, "a"]]}, "prompt[1][1]"),
    ({"prompt": ["a"] * 1025}, "prompt"),
    ({"prompt": "x" * 600}, "input_tokens"),
    ({"prompt": "x" * 100_000}, "input_tokens"),
    ({"suffix": "x"}, "suffix"),
    ({"logprobs": 21}, "logprobs"),
    ({"logprobs": -1}, "logprobs"),
    ({"logprobs": True}, "logprobs"),
]
WRONG_CHAT = [
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": "hi"}, "messages"),
    ({"messages": ["hi"]}, "messages[0]"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": [{"content": "hi"}]}, "messages[0].role"),
    ({"messages": [{"role": 1, "content": "hi"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": 1}]}, "messages[1].content"),
    ({"messages": [{"role": "user", "content": [1]}]}, "messages[0].content[0]"),
    ({"tools": []}, "tools"),
    ({"tools": [{"type": "function"}]}, "tools"),
    ({"tool_choice": "auto"}, "tool_choice"),
    ({"chat_template": "x"}, "chat_template"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"logprobs": 3}, "logprobs"),
    ({"add_generation_prompt": True, "continue_final_message": True}, "continue_final_message"),
]
CASES = [(COMPLETIONS, *case) for case in WRONG + WRONG_COMPLETIONS] + [(CHAT, *case) for case in WRONG + WRONG_CHAT]


async def test_wrong_field_is_answered_with_400_that_names_it(serve):
    served = await serve()
    for path, fields, param in CASES:
        base = {"prompt": "hi"} if path == COMPLETIONS else {"messages": [{"role": "user", "content": "hi"}]}
        status, reply = await served.post(path, {**base, **fields})
        assert (status, reply["error"]["param"]) == (400, param), (path, fields, reply)
        assert reply["error"]["code"] == 400
        assert reply["error"]["type"] == "BadRequestError"
        assert 10 < len(reply["error"]["message"]) < 400
    assert not served.engine.seen


async def test_null_counts_as_not_given(serve):
    served = await serve()
    names = [name for name in CompletionBody.__struct_fields__ if name != "prompt"]
    status, _ = await served.post(COMPLETIONS, {"prompt": "hi", **dict.fromkeys(names)})
    assert status == 200


async def test_unknown_fields_and_harmless_ones_are_ignored(serve):
    served = await serve()
    await served.chat(
        nonsense={"a": [1]},
        user="me",
        tool_choice="none",
        response_format={"type": "text"},
        logit_bias={},
        bad_words=[],
        stop=[],
        parallel_tool_calls=True,
        store=False,
    )


def params(vocab_size=VOCAB_SIZE, **fields):
    text = TextLayer(ByteTokenizer())
    return sampling_params(CompletionBody(prompt="x", **fields), 16, ServerConfig(("m",)), text, vocab_size)


def test_logit_bias_is_clamped():
    assert params(logit_bias={"3": 1000.0, "4": -1000.0}).logit_bias == {3: 100.0, 4: -100.0}


def test_too_many_biases_are_refused_by_name():
    with pytest.raises(InvalidRequestError) as caught:
        params(vocab_size=5000, logit_bias={str(token_id): 1.0 for token_id in range(1025)})
    assert caught.value.param == "logit_bias"


def test_allowed_tokens_are_no_more_than_the_vocabulary():
    assert params(allowed_token_ids=[3, 1, 3] * 1000).allowed_token_ids == (3, 1)


def test_top_k_beyond_the_vocabulary_is_off():
    assert params(top_k=2**40).top_k == 0


@pytest.mark.parametrize("salt", ["", "a@b", "a/b", "a\\b", "a\0b", "x" * 129])
def test_salt_with_separators_is_refused(salt):
    with pytest.raises(InvalidRequestError):
        check_cache_salt(salt)
