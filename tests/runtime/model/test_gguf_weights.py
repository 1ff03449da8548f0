"""A tiny model written as GGUF in every supported format comes back as its dequantized tensors."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from octavo_kernels.reference_backend import ReferenceBackend
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.config import Architecture
from octavo_runtime.model.gguf_weights import SUPPORTED_QUANTIZATIONS, GgufSource, dequantize, hugging_face_name
from octavo_runtime.model.registry import open_checkpoint
from octavo_runtime.testing import PagedModel, build_tiny_model, write_tiny_gguf

SCALE_OFFSETS = {
    GGMLQuantizationType.Q2_K: (80, 82),
    GGMLQuantizationType.Q3_K: (108,),
    GGMLQuantizationType.Q4_K: (0, 2),
    GGMLQuantizationType.Q5_K: (0, 2),
    GGMLQuantizationType.Q6_K: (208,),
}
"""Where the float16 scales of a block lie: random bytes there could be infinite."""

KINDS = [kind for kind in SUPPORTED_QUANTIZATIONS if kind not in SCALE_OFFSETS]


def random_blocks(kind: GGMLQuantizationType, num_blocks: int) -> np.ndarray:
    block_bytes = GGML_QUANT_SIZES[kind][1]
    blocks = np.random.default_rng(0).integers(0, 256, (num_blocks, block_bytes), dtype=np.uint8)
    for offset in SCALE_OFFSETS[kind]:
        blocks[:, offset : offset + 2] = np.array([0.01], np.float16).view(np.uint8)
    return blocks


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_tensor_comes_back_as_the_quantized_original(tmp_path: Path, kind: GGMLQuantizationType) -> None:
    model = build_tiny_model(Architecture.LLAMA)
    path = write_tiny_gguf(tmp_path / "tiny.gguf", model, kind)
    source = open_checkpoint(path).source
    bound = {"F32": 0.0, "F16": 1e-3, "BF16": 1e-2, "Q8_0": 0.02}.get(kind.name, 0.25)
    for name, original in model.state_dict().items():
        restored = source.load(name, torch.float32)
        assert restored.shape == original.shape
        error = (restored - original).abs().max() / original.abs().max()
        assert error <= bound, name


@pytest.mark.parametrize("kind", SCALE_OFFSETS, ids=lambda kind: kind.name)
def test_k_quants_are_dequantized_as_the_gguf_package_does(kind: GGMLQuantizationType) -> None:
    blocks = random_blocks(kind, 600)
    expected = gguf.quants.dequantize(blocks, kind).reshape(-1)
    actual = dequantize(blocks.reshape(-1), kind, torch.float32)
    np.testing.assert_array_equal(actual.numpy(), expected)


@pytest.mark.parametrize(
    "architecture", [Architecture.LLAMA, Architecture.QWEN2, Architecture.QWEN3], ids=lambda value: value.name
)
def test_logits_of_a_float32_gguf_match_transformers(tmp_path: Path, architecture: Architecture) -> None:
    plain_rope = {"rope_type": "default", "rope_theta": 5000.0}
    model = build_tiny_model(architecture, rope_parameters=plain_rope)
    path = write_tiny_gguf(tmp_path / "tiny.gguf", model, GGMLQuantizationType.F32)
    tokens = list(range(3, 33))
    with torch.inference_mode():
        expected = model(torch.tensor([tokens])).logits[0]
    (actual,) = PagedModel(path, ReferenceBackend()).feed([(0, tokens)])
    torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)


def test_llama3_rope_factors_come_from_their_tensor(tmp_path: Path) -> None:
    model = build_tiny_model(Architecture.LLAMA)
    path = write_tiny_gguf(tmp_path / "tiny.gguf", model, GGMLQuantizationType.F32)
    tokens = list(range(100, 150))
    with torch.inference_mode():
        expected = model(torch.tensor([tokens])).logits[0]
    (actual,) = PagedModel(path, ReferenceBackend()).feed([(0, tokens)])
    torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", [GGMLQuantizationType.Q4_1, GGMLQuantizationType.Q8_0], ids=lambda kind: kind.name)
def test_quantized_tensors_equal_those_of_the_transformers_loader(tmp_path: Path, kind: GGMLQuantizationType) -> None:
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    plain_rope = {"rope_type": "default", "rope_theta": 5000.0}
    model = build_tiny_model(Architecture.LLAMA, rope_parameters=plain_rope)
    path = write_tiny_gguf(tmp_path / "tiny.gguf", model, kind)
    expected = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)["tensors"]
    source = open_checkpoint(path).source
    for name, tensor in expected.items():
        torch.testing.assert_close(source.load(name, torch.float32), torch.as_tensor(tensor).float(), atol=0, rtol=0)


def test_an_unsupported_quantization_names_the_supported_ones(tmp_path: Path) -> None:
    model = build_tiny_model(Architecture.LLAMA, hidden_size=256)
    path = write_tiny_gguf(tmp_path / "tiny.gguf", model, GGMLQuantizationType.TQ1_0)
    source = open_checkpoint(path).source
    assert isinstance(source, GgufSource)
    with pytest.raises(StartError, match=r"TQ1_0; supported are F32.*Q6_K") as caught:
        source.load("model.layers.0.mlp.up_proj.weight", torch.float32)
    assert caught.value.cause is StartCause.MODEL_UNSUPPORTED


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.05, 0.5, 0.99])
def test_a_cut_file_is_refused_and_named(tmp_path: Path, share: float) -> None:
    path = write_tiny_gguf(tmp_path / "cut.gguf", build_tiny_model(Architecture.QWEN2), GGMLQuantizationType.Q8_0)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(StartError, match=r"cut\.gguf is damaged or cut off.*download it again") as caught:
        open_checkpoint(path)
    assert caught.value.cause is StartCause.MODEL_CORRUPT


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("blk.12.attn_q.weight", "model.layers.12.self_attn.q_proj.weight"),
        ("blk.0.attn_k.bias", "model.layers.0.self_attn.k_proj.bias"),
        ("output.weight", "lm_head.weight"),
        ("blk.0.attn_rot_embd.weight", None),
    ],
)
def test_names_become_those_of_hugging_face(name: str, expected: str | None) -> None:
    assert hugging_face_name(name) == expected
