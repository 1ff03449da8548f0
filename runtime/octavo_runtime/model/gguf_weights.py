"""`GgufSource`: the tensors of a GGUF file under Hugging Face names, dequantized to float32 one at a time.

Undoes what the GGUF converter did to Llama's q and k rows. Block formats are those of the `gguf` package's dequantizer.
"""

import re
from collections.abc import Mapping

import gguf
import numpy as np
import torch
from gguf.constants import GGMLQuantizationType

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.config import Architecture, ModelConfig
from octavo_runtime.model.gguf_file import GgufHeader, corrupt_gguf

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
        self.origin = str(header.path)
        self._header = header
        self._config = config
        self._data = np.memmap(header.path, mode="r")
        self._gguf_names = {hf: name for name in header.tensors if (hf := hugging_face_name(name)) is not None}
        self._sizes = {hf: header.tensors[name].num_bytes for hf, name in self._gguf_names.items()}

    @property
    def sizes(self) -> Mapping[str, int]:
        return self._sizes

    def load(self, name: str) -> torch.Tensor:
        """float32, in Hugging Face's order of rows."""
        tensor = self._header.tensors[self._gguf_names[name]]
        if tensor.quantization not in SUPPORTED_QUANTIZATIONS:
            known = ", ".join(kind.name for kind in SUPPORTED_QUANTIZATIONS)
            raise StartError(
                StartCause.MODEL_UNSUPPORTED,
                f"{self.origin}: tensor {name} is in {tensor.quantization.name}; supported are {known}.",
            )
        raw = self._data[tensor.offset : tensor.offset + tensor.num_bytes]
        try:
            values = self._dequantize(raw, tensor.quantization, tensor.shape)
        except ValueError as error:
            raise corrupt_gguf(self._header.path, f"tensor {name} has no whole blocks ({error})") from error
        return self._restore_rows(name, values)

    def _dequantize(
        self, raw: np.ndarray, kind: GGMLQuantizationType, shape: tuple[int, ...]
    ) -> torch.Tensor:
        if kind in _PLAIN:
            return torch.from_numpy(np.array(raw)).view(_PLAIN[kind]).view(shape)
        rows = np.asarray(raw).reshape(shape[0], -1)
        return torch.from_numpy(gguf.quants.dequantize(rows, kind)).view(shape)

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


_PLAIN = {
    GGMLQuantizationType.F32: torch.float32,
    GGMLQuantizationType.F16: torch.float16,
    GGMLQuantizationType.BF16: torch.bfloat16,
}


def hugging_face_name(name: str) -> str | None:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`; None for tensors that the model does not use."""
    match = _TENSOR.fullmatch(name)
    if match is None or match["stem"] not in _NAMES:
        return None
    stem = _NAMES[match["stem"]]
    layer = "" if match["layer"] is None else f"model.layers.{match['layer']}."
    return f"{layer}{stem}.{match['kind']}"
