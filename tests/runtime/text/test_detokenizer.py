"""Incremental text: whole characters only, the same text for every split."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_runtime.text.detokenizer import Detokenizer


def single_byte(token_id: int) -> bytes:
    return bytes([token_id])


@given(st.text(max_size=20))
def test_text_comes_back_byte_by_byte_without_a_replacement_character(text: str) -> None:
    detokenizer = Detokenizer(single_byte)
    pieces = [detokenizer.push((byte,)) for byte in text.encode()]
    assert "".join(pieces) + detokenizer.flush() == text
    assert all(piece == "" or text.find(piece) >= 0 for piece in pieces)


@given(st.binary(max_size=30), st.lists(st.integers(1, 6), max_size=30))
def test_any_bytes_in_any_split_equal_one_decoding(data: bytes, sizes: list[int]) -> None:
    detokenizer, out, at = Detokenizer(single_byte), "", 0
    for size in sizes:
        out += detokenizer.push(data[at : at + size])
        at += size
    assert out + detokenizer.push(data[at:]) + detokenizer.flush() == data.decode("utf-8", errors="replace")


def test_unfinished_character_is_replaced_at_the_end() -> None:
    detokenizer = Detokenizer(single_byte)
    assert detokenizer.push(b"ok\xf0\x9f") == "ok"
    assert detokenizer.flush() == "\ufffd"


@pytest.mark.parametrize(
    ("generated", "expected"),
    [("👋".encode()[2:] + b"!", "👋!"), (b"hi", "hi"), (b"", "")],
    ids=["finishes it", "does not finish it", "says nothing"],
)
def test_prompt_that_ends_inside_a_character_leaks_nothing(generated: bytes, expected: str) -> None:
    detokenizer = Detokenizer(single_byte, prompt_token_ids=list(b"wave " + "👋".encode()[:2]))
    assert detokenizer.push(generated) + detokenizer.flush() == expected


def test_special_tokens_can_be_skipped(byte_tokenizer: Any) -> None:
    ids = [256, *b"hi", 257]
    assert Detokenizer(byte_tokenizer.token_bytes).push(ids) == "<s>hi</s>"
    assert Detokenizer(byte_tokenizer.token_bytes, byte_tokenizer.special_ids).push(ids) == "hi"
