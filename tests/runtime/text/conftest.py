"""The real SmolLM2 tokenizer (from the embedded model) and a fake one whose tokens are bytes."""

from pathlib import Path

import pytest

from octavo_runtime.hub import ModelSource, resolve_model
from octavo_runtime.text.tokenizer import Tokenizer


class ByteTokenizer:
    """Token i < 256 is byte i; 256 and 257 are special and spelled <s> and </s>; 258 is a half emoji."""

    special_ids = frozenset({256, 257})
    eos_token_id = 257

    def token_bytes(self, token_id: int) -> bytes:
        return {256: b"<s>", 257: b"</s>", 258: b"\xf0\x9f"}.get(token_id, bytes([token_id % 256]))


@pytest.fixture(scope="session")
def byte_tokenizer() -> ByteTokenizer:
    return ByteTokenizer()


@pytest.fixture(scope="session")
def embedded() -> ModelSource:
    return resolve_model("embedded")


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared, because a conversion takes seconds."""
    return tmp_path_factory.getbasetemp() / "octavo-cache"


@pytest.fixture(scope="session")
def tokenizer(embedded: ModelSource, cache_dir: Path) -> Tokenizer:
    return Tokenizer.load(embedded, cache_dir)
