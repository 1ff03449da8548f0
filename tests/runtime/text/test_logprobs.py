"""Tokens as log-probabilities report them."""

from octavo_runtime.text.logprobs import text_offsets, token_piece
from octavo_runtime.text.tokenizer import Tokenizer


def test_pieces_join_to_the_text_and_offsets_count_characters(tokenizer: Tokenizer) -> None:
    text = "Hi 👋 é!"
    pieces = [token_piece(tokenizer, token_id) for token_id in tokenizer.encode(text)]
    assert b"".join(piece.data for piece in pieces).decode() == text
    offsets = text_offsets(pieces, start=10)
    assert offsets[0] == 10
    assert offsets[-1] == 10 + len(text) - 1
    assert offsets == sorted(offsets)


def test_token_can_be_written_as_its_id(tokenizer: Tokenizer) -> None:
    assert token_piece(tokenizer, 2, as_token_id=True).token == "token_id:2"
    assert token_piece(tokenizer, 2).token == "<|im_end|>"
