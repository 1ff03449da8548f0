"""Token ids -> text, piece by piece, never half a character.

Each token's bytes go through an incremental UTF-8 decoder, which keeps an unfinished character back until its last byte
has come; a byte sequence that can no longer become a character gives U+FFFD at once. Constant cost per token.
"""

import codecs
from collections.abc import Callable, Iterable, Sequence

_LONGEST_CHARACTER = 4  # bytes of UTF-8


class Detokenizer:
    """The text of one sequence's generated tokens, as it grows.

    `token_bytes` gives a token's bytes; `skipped` are ids without text. The prompt's end matters only where it stops
    inside a character: then the character appears here when the generated tokens finish it, and nothing does when they
    do not.
    """

    def __init__(
        self,
        token_bytes: Callable[[int], bytes],
        skipped: frozenset[int] = frozenset(),
        prompt_token_ids: Sequence[int] = (),
    ) -> None:
        self._token_bytes = token_bytes
        self._skipped = skipped
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._from_prompt = _unfinished_character(self._bytes(prompt_token_ids[-_LONGEST_CHARACTER:]))
        self._utf8.decode(self._from_prompt)

    def push(self, token_ids: Iterable[int]) -> str:
        """The text that these tokens complete; may be empty."""
        return self._decode(self._bytes(token_ids), final=False)

    def flush(self) -> str:
        """What was kept back, as U+FFFD where it is no character. Nothing comes after."""
        return self._decode(b"", final=True)

    def _bytes(self, token_ids: Iterable[int]) -> bytes:
        token_bytes, skipped = self._token_bytes, self._skipped
        return b"".join([token_bytes(token_id) for token_id in token_ids if token_id not in skipped])

    def _decode(self, data: bytes, final: bool) -> str:
        text = self._utf8.decode(data, final)
        if self._from_prompt and text:
            text = text.removeprefix("\ufffd")  # the prompt's half character stays the prompt's
            self._from_prompt = b""
        return text


def _unfinished_character(data: bytes) -> bytes:
    """The bytes at the end of `data` that begin a character and do not finish it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return decoder.getstate()[0]
