"""How a token is written where log-probabilities are reported: its text, its bytes, its offset in the text."""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass

from octavo_runtime.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class TokenPiece:
    """`token` as OpenAI's `token` and `tokens` fields show it; `data` are its bytes, to be joined across tokens."""

    token: str
    data: bytes


def token_piece(tokenizer: Tokenizer, token_id: int, as_token_id: bool = False) -> TokenPiece:
    """A token with part of a character only is written `bytes:\\xe2\\x80`, so that different ones stay different.

    `as_token_id` (return_tokens_as_token_ids) writes `token_id:N` instead of the text.
    """
    token = f"token_id:{token_id}" if as_token_id else tokenizer.token_text(token_id)
    return TokenPiece(token, tokenizer.token_bytes(token_id))


def text_offsets(pieces: Iterable[TokenPiece], start: int = 0) -> list[int]:
    """Where each piece begins, in characters of the text; parts of one character begin at the same place."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    offsets = []
    for piece in pieces:
        offsets.append(start)
        start += len(decoder.decode(piece.data))
    return offsets
