"""`GgufSource`: the tensors of a GGUF file under Hugging Face names, dequantized one at a time.

Undoes what the GGUF converter did to Llama's q and k rows. Block formats are those of the `gguf` package's dequantizer.
"""

import math
import re
from collections.abc import Mapping

import gguf
import numpy as np
import numpy.typing as npt
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.gguf_header import GgufHeader, GgufTensor, corrupt_gguf
from octavo_runtime.model.config import Architecture, ModelConfig

SUPPORTED_QUANTIZATIONS = (
    GGMLQuantizationType.F32,
    GGMLQuantizationType.F16,
    GGMLQuantizationType.BF16,
    GGMLQuantizationType.Q4_0,
    GGMLQuantizationType.Q4_1,
    GGMLQuantizationType.Q5_0,
    GGMLQuantizationType.Q5_1,
    GGMLQuantizationType.Q8_0,
    GGMLQuantizationType.Q2_K,
    GGMLQuantizationType.Q3_K,
    GGMLQuantizationType.Q4_K,
    GGMLQuantizationType.Q5_K,
    GGMLQuantizationType.Q6_K,
)

_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "rope_freqs": "rope_freqs",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}

_TENSOR = re.compile(r"(?:blk\.(?P<layer>\d+)\.)?(?P<stem>\w+)\.(?P<kind>weight|bias)")


class GgufSource:
    """Tensors of one GGUF file."""

    def __init__(self, header: GgufHeader, config: ModelConfig) -> None:
        """Raises StartError(MODEL_CORRUPT) when the file ends before its tensors do."""
        self.origin = str(header.path)
        self._header = header
        self._config = config
        self._data = np.memmap(header.path, mode="r")
        sizes = _checked_sizes(header)
        self._gguf_names = {hf: name for name in header.tensors if (hf := hugging_face_name(name)) is not None}
        self._sizes = {hf: sizes[name] for hf, name in self._gguf_names.items()}

    @property
    def sizes(self) -> Mapping[str, int]:
        return self._sizes

    def load(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        """In Hugging Face's order of rows."""
        tensor = self._header.tensors[self._gguf_names[name]]
        kind = GGMLQuantizationType(tensor.kind)
        if kind not in SUPPORTED_QUANTIZATIONS:
            known = ", ".join(kind.name for kind in SUPPORTED_QUANTIZATIONS)
            raise StartError(
                StartCause.MODEL_UNSUPPORTED,
                f"{self.origin}: tensor {name} is in {kind.name}; supported are {known}.",
            )
        raw = self._data[tensor.offset : tensor.offset + self._sizes[name]]
        if kind in _PLAIN:
            values = torch.from_numpy(np.array(raw)).view(_PLAIN[kind]).to(dtype)
        else:
            values = dequantize(raw, kind, dtype)
        if values.numel() != math.prod(tensor.shape):
            raise corrupt_gguf(self._header.path, f"tensor {name} has no whole blocks")
        return self._restore_rows(name, values.view(tensor.shape))

    def _restore_rows(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """GGUF keeps Llama's q and k rows interleaved (pairs of one rotation side by side); halves are wanted."""
        if self._config.architecture not in (Architecture.LLAMA, Architecture.MISTRAL):
            return values
        if not name.endswith(("q_proj.weight", "k_proj.weight", "q_proj.bias", "k_proj.bias")):
            return values
        half = self._config.head_dim // 2
        if values.shape[0] % (2 * half):
            raise corrupt_gguf(self._header.path, f"tensor {name} has {values.shape[0]} rows, not whole heads")
        paired = values.view(-1, half, 2, *values.shape[1:])  # [heads, D/2, 2, ...]
        return paired.transpose(1, 2).reshape(values.shape)


def _checked_sizes(header: GgufHeader) -> dict[str, int]:
    """Bytes of every tensor; all of them lie within the file."""
    file_bytes = header.path.stat().st_size
    sizes = {name: _num_bytes(header, name, tensor) for name, tensor in header.tensors.items()}
    needed = max((tensor.offset + sizes[name] for name, tensor in header.tensors.items()), default=0)
    if needed > file_bytes:
        raise corrupt_gguf(header.path, f"it is {file_bytes} bytes long, its tensors need {needed}")
    return sizes


def _num_bytes(header: GgufHeader, name: str, tensor: GgufTensor) -> int:
    if tensor.kind not in GGML_QUANT_SIZES:
        raise corrupt_gguf(header.path, f"tensor {name} is of the unknown type {tensor.kind}")
    per_block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(tensor.kind)]
    return math.prod(tensor.shape) // per_block * block_bytes


_PLAIN = {
    GGMLQuantizationType.F32: torch.float32,
    GGMLQuantizationType.F16: torch.float16,
    GGMLQuantizationType.BF16: torch.bfloat16,
}


CHUNK = 1 << 16
"""Numbers dequantized at once: their float32 intermediates stay in the cache (1.3 times as fast as whole tensors)."""


def dequantize(raw: npt.NDArray[np.uint8], kind: GGMLQuantizationType, dtype: torch.dtype) -> torch.Tensor:
    """Bytes of whole blocks -> their numbers, flat."""
    per_block, block_bytes = GGML_QUANT_SIZES[kind]
    values = torch.empty(raw.size // block_bytes * per_block, dtype=dtype)
    chunk_bytes = CHUNK // per_block * block_bytes
    for i, begin in enumerate(range(0, raw.size, chunk_bytes)):
        chunk = gguf.quants.dequantize(raw[begin : begin + chunk_bytes].reshape(1, -1), kind)
        values[i * CHUNK : i * CHUNK + chunk.size] = torch.from_numpy(chunk.reshape(-1))
    return values


def hugging_face_name(name: str) -> str | None:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`; None for tensors that no model uses."""
    match = _TENSOR.fullmatch(name)
    if match is None or match["stem"] not in _NAMES:
        return None
    stem = _NAMES[match["stem"]]
    layer = "" if match["layer"] is None else f"model.layers.{match['layer']}."
    return f"{layer}{stem}.{match['kind']}"


def gguf_stem(stem: str) -> str:
    """The way back: `model.layers.3.self_attn.q_proj` -> `blk.3.attn_q`. Raises KeyError for an unknown layer."""
    match = re.fullmatch(r"(?:model\.layers\.(?P<layer>\d+)\.)?(?P<rest>.+)", stem)
    layer = "" if match is None or match["layer"] is None else f"blk.{match['layer']}."
    by_name = {name: gguf_name for gguf_name, name in _NAMES.items()}
    return layer + by_name[stem if match is None else match["rest"]]
