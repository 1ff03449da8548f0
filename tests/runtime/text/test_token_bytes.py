"""Bytes of tokens by kind of vocabulary."""

import pytest

from octavo_runtime.errors import StartError
from octavo_runtime.text.token_bytes import ByteLevel, SentencePiece, token_bytes_of


@pytest.mark.parametrize(
    ("decoder", "kind"),
    [
        ({"type": "ByteLevel"}, ByteLevel()),
        ({"type": "Sequence", "decoders": [{"type": "ByteLevel"}]}, ByteLevel()),
        ({"type": "Metaspace", "prepend_scheme": "always"}, SentencePiece(True)),
        ({"type": "Metaspace", "prepend_scheme": "never"}, SentencePiece(False)),
        ({"type": "Sequence", "decoders": [{"type": "Replace"}, {"type": "ByteFallback"}]}, SentencePiece(False)),
    ],
)
def test_kind_comes_from_the_decoder(decoder: dict[str, object], kind: object) -> None:
    assert token_bytes_of(decoder) == kind


def test_no_decoder_is_refused() -> None:
    with pytest.raises(StartError, match="nothing"):
        token_bytes_of(None)


def test_byte_level_covers_every_byte_and_keeps_added_tokens() -> None:
    assert ByteLevel().token_bytes("Ġthe") == b" the"
    assert ByteLevel().token_bytes("ðŁĳĭ") == "👋".encode()
    assert ByteLevel().token_bytes("<|a b|>") == b"<|a b|>"


def test_sentencepiece_spaces_and_bytes() -> None:
    kind = SentencePiece(True)
    assert [kind.token_bytes(token) for token in ("▁▁a", "<0xE2>", "<0xZZ>", "é")] == [
        b"  a",
        b"\xe2",
        b"<0xZZ>",
        "é".encode(),
    ]
