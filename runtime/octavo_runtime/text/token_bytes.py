"""The bytes that each token stands for, by the kind of vocabulary.

A text is the UTF-8 decoding of its tokens' bytes, so incremental text needs no second decoding of earlier tokens. Two
kinds exist: byte-level BPE writes every byte as one printable character; SentencePiece writes a space as U+2581 and a
byte without a token as <0xNN>. Given the `decoder` part of a tokenizer.json; knows no tokenizer library.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from octavo_runtime.errors import StartCause, StartError


@dataclass(frozen=True, slots=True)
class ByteLevel:
    """GPT-2's alphabet: printable bytes are themselves, the others are moved up to U+0100 and beyond."""

    strips_first_space = False

    def token_bytes(self, token: str) -> bytes:
        """A token with a character outside the alphabet (an added one) is plain UTF-8."""
        try:
            return bytes([_BYTE_OF_CHARACTER[character] for character in token])
        except KeyError:
            return token.encode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class SentencePiece:
    """U+2581 is a space, <0xNN> a byte; a text of its own loses the space that encoding put in front of it."""

    strips_first_space: bool

    def token_bytes(self, token: str) -> bytes:
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            try:
                return bytes([int(token[3:5], 16)])
            except ValueError:
                return token.encode("utf-8")
        return token.replace("\u2581", " ").encode("utf-8", errors="replace")


TokenBytes = ByteLevel | SentencePiece


def token_bytes_of(decoder: Mapping[str, Any] | None) -> TokenBytes:
    """The rule for the `decoder` entry of a tokenizer.json; StartError(MODEL_UNSUPPORTED) when it is another kind."""
    steps = list(_steps(decoder or {}))
    kinds = {step.get("type") for step in steps}
    if "ByteLevel" in kinds:
        return ByteLevel()
    if "Metaspace" in kinds:
        metaspace = next(step for step in steps if step.get("type") == "Metaspace")
        return SentencePiece(strips_first_space=metaspace.get("prepend_scheme", "always") != "never")
    if "ByteFallback" in kinds or "Replace" in kinds:
        return SentencePiece(strips_first_space="Strip" in kinds)
    message = (
        f"The tokenizer decodes with {sorted(str(kind) for kind in kinds) or 'nothing'}; "
        "supported are byte-level BPE and SentencePiece vocabularies."
    )
    raise StartError(StartCause.MODEL_UNSUPPORTED, message)


def _steps(decoder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if decoder.get("type") == "Sequence":
        for step in decoder.get("decoders", ()):
            yield from _steps(step)
    elif decoder:
        yield decoder


def _byte_alphabet() -> dict[str, int]:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(moved)}


_BYTE_OF_CHARACTER = _byte_alphabet()
