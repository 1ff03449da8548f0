import math

from octavo_runtime.engine.messages import TokenLogprobs
from octavo_runtime.server.logprobs import CompletionLogprobs, TokenNames, chat_logprobs, prompt_logprobs
from octavo_runtime.server.testing import BOS, EOS, ByteTokenizer

NAMES = TokenNames(ByteTokenizer(), as_ids=False)


def entries(*ids, logprob=-0.5, top=()):
    return [TokenLogprobs(token_id=token_id, logprob=logprob, rank=1, top=list(top)) for token_id in ids]


def test_offsets_count_characters_not_bytes_and_skip_hidden_tokens():
    writer = CompletionLogprobs(NAMES, frozenset({BOS, EOS}))
    assert writer.first(BOS)["text_offset"] == [0]
    written = writer.write(entries(*"aé漢b".encode(), EOS))
    assert written["text_offset"] == [0, 1, 1, 2, 2, 2, 3, 4]


def test_offsets_go_on_in_the_next_chunk():
    writer = CompletionLogprobs(NAMES, frozenset())
    writer.write(entries(*b"ab"))
    assert writer.write(entries(*b"c"))["text_offset"] == [2]


def test_minus_infinity_is_written_as_a_number():
    entry = entries(97, logprob=-math.inf, top=[(98, -math.inf)])
    written = CompletionLogprobs(NAMES, frozenset()).write(entry)
    assert written["token_logprobs"] == [-9999.0]
    assert written["top_logprobs"] == [{"b": -9999.0, "a": -9999.0}]
    assert chat_logprobs(NAMES, entry)["content"][0]["logprob"] == -9999.0


def test_the_chosen_token_is_among_the_top_of_completions():
    written = CompletionLogprobs(NAMES, frozenset()).write(entries(97, top=[(98, -0.1)]))
    assert written["top_logprobs"] == [{"b": -0.1, "a": -0.5}]


def test_parts_of_a_character_have_bytes():
    (content,) = chat_logprobs(NAMES, entries(0xE2))["content"]
    assert content["bytes"] == [0xE2]
    assert content["token"]


def test_prompt_logprobs_begin_with_null():
    written = prompt_logprobs(TokenNames(ByteTokenizer(), as_ids=True), entries(97, top=[(98, -0.1)]))
    assert written[0] is None
    assert written[1] == {
        "97": {"logprob": -0.5, "rank": 1, "decoded_token": "token_id:97"},
        "98": {"logprob": -0.1, "rank": 1, "decoded_token": "token_id:98"},
    }
