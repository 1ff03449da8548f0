"""Tiny models in the Hugging Face layout, served by the mirror of e2e/ in this process."""

import importlib.util
import json
import struct
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from octavo_operator.model.http_get import Timeouts
from octavo_operator.model.hub import Hub, HubSettings

ROOT = Path(__file__).parents[3]
BITS = {"F32": 32, "BF16": 16, "F16": 16, "I32": 32, "F8_E4M3": 8}

Shapes = Mapping[str, tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Served:
    """The mirror's object and its address."""

    mirror: Any
    address: str
    root: Path


@pytest.fixture(scope="session")
def mirror_module() -> ModuleType:
    """e2e/ is no package: its files are run, not imported."""
    spec = importlib.util.spec_from_file_location("octavo_e2e_mirror", ROOT / "e2e" / "mirror.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tiny_config() -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
    }


@pytest.fixture
def safetensors() -> Callable[[Shapes], bytes]:
    """The bytes of a file that holds zeros in these formats and shapes."""

    def build(shapes: Shapes) -> bytes:
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        offset = 0
        for name, (dtype, shape) in shapes.items():
            count = 1
            for size in shape:
                count *= size
            end = offset + count * BITS[dtype] // 8
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
            offset = end
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + bytes(offset)

    return build


@pytest.fixture
def gguf() -> Callable[[Mapping[str, Any], Mapping[str, tuple[int, ...]]], bytes]:
    """A GGUF file: metadata (strings, integers, lists of strings) and tensors of zero bytes, shapes rows first."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def value(item: Any) -> bytes:
        if isinstance(item, str):
            return struct.pack("<I", 8) + text(item)
        if isinstance(item, list):
            return struct.pack("<IIQ", 9, 8, len(item)) + b"".join(map(text, item))
        return struct.pack("<II", 4, item)

    def build(metadata: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> bytes:
        parts = [struct.pack("<4sIQQ", b"GGUF", 3, len(shapes), len(metadata))]
        parts += [text(name) + value(item) for name, item in metadata.items()]
        for name, shape in shapes.items():
            parts.append(text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape)))
            parts.append(struct.pack("<IQ", 0, 0))
        return b"".join(parts) + bytes(64)

    return build


@pytest.fixture
def tiny_gguf(gguf: Callable[..., bytes]) -> bytes:
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": 4,
        "llama.embedding_length": 32,
        "llama.feed_forward_length": 48,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.context_length": 512,
        "tokenizer.ggml.tokens": [f"token {number}" for number in range(300)],
    }
    return gguf(metadata, {"token_embd.weight": (64, 32), "blk.0.attn_q.weight": (32, 32)})


@pytest.fixture
def model_root(tmp_path: Path, tiny_config: dict[str, Any], safetensors: Callable[[Shapes], bytes]) -> Path:
    """ORG/NAME/BRANCH below this: org/tiny with branches main and next."""
    for branch in ("main", "next"):
        folder = tmp_path / "org" / "tiny" / branch
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(tiny_config | {"note": branch}))
        (folder / "tokenizer.json").write_text("{}")
        (folder / "README.md").write_text("# tiny")
        (folder / "model.safetensors").write_bytes(
            safetensors({"embed": ("BF16", (64, 32)), "layer": ("BF16", (32, 32)), "norm": ("F32", (32,))})
        )
    return tmp_path


@pytest.fixture
async def served(mirror_module: ModuleType, model_root: Path) -> AsyncIterator[Served]:
    mirror = mirror_module.Mirror(model_root)
    async with TestServer(mirror.app()) as server:
        yield Served(mirror, f"http://{server.host}:{server.port}", model_root)


@pytest.fixture
async def hub(served: Served) -> AsyncIterator[Hub]:
    """A client of the mirror with short patience and a clock that stands still."""
    async with aiohttp.ClientSession() as session:
        settings = HubSettings(served.address, Timeouts(connect=2, read=1, attempt=5))
        yield Hub(session, settings, clock=lambda: 1_000_000.0)
