"""Weights in the form that the native kernels read (`src/pack.h`), laid side by side in memory with huge pages."""

from dataclasses import dataclass

import torch

from octavo_kernels.cpu.native import DTYPE_CODES, load_library

HUGE_PAGE = 2 << 20
CHUNK_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class NativeLinear:
    """A packed weight [out_features, in_features]; `packed` is its bytes, `bias` [out_features] float32 or None."""

    in_features: int
    out_features: int
    dtype: torch.dtype
    packed: torch.Tensor
    bias: torch.Tensor | None


class WeightArena:
    """Hands out 64-byte aligned memory from chunks on huge pages. A chunk lives as long as a tensor handed out of it."""

    def __init__(self) -> None:
        self._free = torch.empty(0, dtype=torch.uint8)

    def allocate(self, num_bytes: int) -> torch.Tensor:
        """[num_bytes] uint8, not initialised."""
        padded = -(-num_bytes // 64) * 64
        if padded > self._free.numel():
            self._free = _huge_page_chunk(max(padded, CHUNK_BYTES))
        taken, self._free = self._free[:num_bytes], self._free[padded:]
        return taken


def _huge_page_chunk(num_bytes: int) -> torch.Tensor:
    memory = torch.empty(num_bytes + HUGE_PAGE, dtype=torch.uint8)
    start = -memory.data_ptr() % HUGE_PAGE
    load_library().octavo_advise_huge_pages(memory.data_ptr() + start, num_bytes)
    return memory[start : start + num_bytes]


def pack_linear(
    weight: torch.Tensor, bias: torch.Tensor | None, dtype: torch.dtype, arena: WeightArena
) -> NativeLinear:
    """weight [N, K] of any float dtype -> packed as `dtype` (float32 or bfloat16)."""
    out_features, in_features = weight.shape
    source = weight.detach().to(dtype).contiguous()
    library, code = load_library(), DTYPE_CODES[dtype]
    packed = arena.allocate(library.octavo_packed_bytes(out_features, in_features, code))
    library.octavo_pack_linear(source.data_ptr(), out_features, in_features, code, packed.data_ptr())
    wide_bias = None if bias is None else bias.detach().to(torch.float32).contiguous()
    return NativeLinear(in_features, out_features, dtype, packed, wide_bias)
