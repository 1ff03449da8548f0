from pathlib import Path

import pytest
from gguf.constants import GGMLQuantizationType

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.gguf_header import GgufHeader, read_gguf_header
from octavo_runtime.model.config import Architecture, parse_config
from octavo_runtime.model.gguf_config import gguf_config
from octavo_runtime.testing import build_tiny_model, write_tiny_gguf


@pytest.mark.parametrize("architecture", [Architecture.QWEN2, Architecture.QWEN3], ids=lambda value: value.name)
def test_the_config_equals_that_of_the_same_model_in_hugging_faces_form(
    tmp_path: Path, architecture: Architecture
) -> None:
    model = build_tiny_model(architecture)
    path = write_tiny_gguf(tmp_path / "tiny.gguf", model, GGMLQuantizationType.F16)
    expected = parse_config({**model.config.to_dict(), "architectures": [architecture.value]}, "")
    actual = gguf_config(read_gguf_header(path))
    assert abs(actual.rms_norm_eps - expected.rms_norm_eps) < 1e-12
    names = [name for name in expected.__slots__ if name not in ("rms_norm_eps", "rope")]
    assert [getattr(actual, name) for name in names] == [getattr(expected, name) for name in names]
    assert actual.rope.theta == expected.rope.theta


def test_an_unknown_architecture_names_the_supported_ones() -> None:
    header = GgufHeader(Path("a.gguf"), {"general.architecture": "mamba"}, {})
    with pytest.raises(StartError, match="mamba is not supported; supported in GGUF are llama") as caught:
        gguf_config(header)
    assert caught.value.cause is StartCause.MODEL_UNSUPPORTED


def test_a_missing_field_is_corrupt_and_named() -> None:
    header = GgufHeader(Path("a.gguf"), {"general.architecture": "llama"}, {})
    with pytest.raises(StartError, match=r"llama\.block_count must be a positive integer") as caught:
        gguf_config(header)
    assert caught.value.cause is StartCause.MODEL_CORRUPT


def test_a_mixture_of_experts_is_unsupported() -> None:
    header = GgufHeader(Path("a.gguf"), {"general.architecture": "llama", "llama.expert_count": 8}, {})
    with pytest.raises(StartError, match="mixture of experts"):
        gguf_config(header)
