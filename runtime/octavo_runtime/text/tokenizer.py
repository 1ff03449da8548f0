"""Text -> token ids, and what each id stands for. The only import of the tokenizer library.

Reads a folder's tokenizer.json; whatever has none (a GGUF file, a SentencePiece model) is converted once by
`tokenizer_conversion.py` and kept. Knows no torch and no chat.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tokenizers

from octavo_runtime.errors import InvalidRequestError, StartCause, StartError
from octavo_runtime.hub import ModelSource, read_json
from octavo_runtime.text.detokenizer import Detokenizer
from octavo_runtime.text.token_bytes import token_bytes_of
from octavo_runtime.text.tokenizer_conversion import converted_tokenizer

_LARGEST_ID = 2**32 - 1  # what the library can look up
_NO_TOKENS: frozenset[int] = frozenset()


class Tokenizer:
    """A model's vocabulary. Thread-safe; encoding a long text lets other Python threads run meanwhile."""

    def __init__(self, backend: tokenizers.Tokenizer, config: dict[str, Any]) -> None:
        """`config` is the content of tokenizer_config.json."""
        self._backend = backend
        self._kind = token_bytes_of(json.loads(backend.to_str())["decoder"])
        self._bytes: dict[int, bytes] = {}
        self._config = config
        added = backend.get_added_tokens_decoder()
        self.special_ids = frozenset(token_id for token_id, token in added.items() if token.special)
        self.vocab_size = backend.get_vocab_size(with_added_tokens=True)
        self.bos_token = _token_string(config.get("bos_token"))
        self.eos_token = _token_string(config.get("eos_token"))
        self.bos_token_id = self._id_of(self.bos_token)
        self.eos_token_id = self._id_of(self.eos_token)

    @classmethod
    def load(cls, source: ModelSource, cache_dir: Path, path: Path | None = None) -> "Tokenizer":
        """The tokenizer of `source`, or the one in the folder or file `path` (--tokenizer).

        `cache_dir` keeps what had to be converted. Raises StartError when there is none or it is broken.
        """
        file = _tokenizer_file(source.path if path is None else path.expanduser(), cache_dir)
        try:
            backend = tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises bare Exception
            message = f"{file} is not a readable tokenizer ({error}); download the model again."
            raise StartError(StartCause.MODEL_CORRUPT, message) from error
        backend.no_truncation()
        backend.no_padding()
        return cls(backend, _read_config(file.parent))

    @property
    def special_tokens(self) -> dict[str, str]:
        """Named special tokens (bos_token, eos_token, ...) as chat templates refer to them."""
        named = {name: _token_string(value) for name, value in self._config.items() if name.endswith("_token")}
        return {name: token for name, token in named.items() if token is not None}

    @property
    def chat_template(self) -> Any:
        """chat_template.jinja beside the tokenizer, or `chat_template` of its config: a string or a list of named."""
        return self._config.get("chat_template")

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Token ids of `text`; `add_special_tokens` puts BOS (and whatever the model wants) around it."""
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            message = f"The text contains a lone surrogate at character {error.start}, which is not valid Unicode."
            raise InvalidRequestError(message) from error
        ids: list[int] = self._backend.encode(text, add_special_tokens=add_special_tokens).ids
        return ids

    def decode(self, token_ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """The text of `token_ids` as a text of its own; U+FFFD stands for bytes that are no character."""
        detokenizer = Detokenizer(self.token_bytes, self.special_ids if skip_special_tokens else _NO_TOKENS)
        text = detokenizer.push(token_ids) + detokenizer.flush()
        return text.removeprefix(" ") if self._kind.strips_first_space else text

    def token_bytes(self, token_id: int) -> bytes:
        """UTF-8 bytes of one token, possibly part of a character; empty for an id without a token."""
        known = self._bytes.get(token_id)
        if known is None:
            known = self._kind.token_bytes(self.token_string(token_id))
            self._bytes[token_id] = known
        return known

    def token_text(self, token_id: int) -> str:
        """One token for people: its text, or `bytes:\\xe2\\x80` when it is only part of a character."""
        data = self.token_bytes(token_id)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)

    def token_string(self, token_id: int) -> str:
        """The token as the vocabulary spells it (`\u0120the`), for /tokenize's token_strs; empty for an unknown id."""
        return (self._backend.id_to_token(token_id) or "") if 0 <= token_id <= _LARGEST_ID else ""

    def _id_of(self, token: str | None) -> int | None:
        return None if token is None else self._backend.token_to_id(token)


def _tokenizer_file(place: Path, cache_dir: Path) -> Path:
    """The file that `place` is or holds; made first where there is none (a GGUF file, a SentencePiece folder)."""
    if not place.exists():
        message = f"--tokenizer {place} does not exist; give a folder with tokenizer.json, or such a file."
        raise StartError(StartCause.INVALID_SETTINGS, message)
    if place.is_file() and place.suffix != ".gguf":
        return place
    file = place / "tokenizer.json"
    return file if file.is_file() else converted_tokenizer(place, cache_dir) / "tokenizer.json"


def _read_config(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json, with the chat template that newer folders keep in a file of its own."""
    config, template = folder / "tokenizer_config.json", folder / "chat_template.jinja"
    content = read_json(config) if config.is_file() else {}
    return content | ({"chat_template": template.read_text(encoding="utf-8")} if template.is_file() else {})


def _token_string(value: Any) -> str | None:
    """Special tokens are written as a string or as an object with `content`."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None
