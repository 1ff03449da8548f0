"""The `cpu` backend: packed weights, the paged cache in ordinary memory, forwards as native programs, native sampling.

While it is used, its threads compute and torch only holds memory: the caller sets torch to one thread.
"""

from collections.abc import Callable
from typing import Any

import torch

from octavo_kernels.backend import SamplingBatch
from octavo_kernels.cpu.native import MAX_VOCAB, Engine, Isa, NativeLibraryError, SampleStruct, available_isas
from octavo_kernels.cpu.packed_linear import NativeLinear, WeightArena, pack_linear
from octavo_kernels.cpu.program import Program
from octavo_kernels.cpu.program_builder import record
from octavo_kernels.cpu.run_args import check_cache_shape
from octavo_kernels.ops import CacheShape, KVCache, Ops


def available() -> bool:
    """Whether the native library is installed and this machine has an instruction set that it was built for."""
    return bool(available_isas())


class CpuBackend:
    """Native kernels on `num_threads` threads; weights are kept as bfloat16 when `dtype` is, else as float32.

    `isa` forces an instruction set, for tests and measurements; by default the best one there is.
    :raises NativeLibraryError: without the library or the instruction set
    """

    name = "cpu"

    def __init__(self, num_threads: int, dtype: torch.dtype, isa: Isa | None = None) -> None:
        isas = available_isas()
        if not isas:
            raise NativeLibraryError("the native CPU kernels are not there: build them, or use the backend torch_cpu")
        self.isa = isas[-1] if isa is None else isa
        self.weight_dtype = torch.bfloat16 if dtype is torch.bfloat16 else torch.float32
        self._engine = Engine(num_threads, self.isa)
        self._arena = WeightArena()

    def stored_dtype(self, dtype: torch.dtype) -> torch.dtype:  # noqa: ARG002
        return self.weight_dtype

    def pack_linear(self, weight: torch.Tensor, bias: torch.Tensor | None) -> NativeLinear:
        return pack_linear(weight, bias, self.weight_dtype, self._arena)

    def allocate_kv_cache(self, shape: CacheShape) -> KVCache:
        """Not initialised: attention reads no slot beyond a context, and the operating system gives pages when they are
        first written, so a large cache costs no time at start.

        :raises ValueError: for a shape or dtype that the kernels cannot read
        """
        check_cache_shape(shape)
        blocks = (shape.num_layers, shape.num_blocks, shape.num_kv_heads)
        k = torch.empty(*blocks, shape.head_dim, shape.block_size, dtype=shape.dtype)
        v = torch.empty(*blocks, shape.block_size, shape.head_dim, dtype=shape.dtype)
        return KVCache(shape, k, v)

    def compile(self, forward: Callable[[Ops[Any]], Any], cache: KVCache, vocab_size: int) -> Program:
        """:raises ValueError: for a forward, a cache or a vocabulary that the kernels are not made for"""
        _check_vocab(vocab_size)
        return Program(record(forward, cache.shape, vocab_size), self._engine, cache, vocab_size)

    def sample(self, logits: torch.Tensor, draws: SamplingBatch) -> torch.Tensor:
        """logits [L, vocab] float32, contiguous -> token ids [S] int32.

        :raises ValueError: for a vocabulary that the kernels are not made for
        """
        _check_vocab(logits.shape[1])
        token_ids = torch.empty(draws.rows.shape[0], dtype=torch.int32)
        self._engine.sample(
            SampleStruct(
                logits.data_ptr(),
                logits.stride(0),
                logits.shape[1],
                token_ids.shape[0],
                draws.rows.data_ptr(),
                draws.temperature.data_ptr(),
                draws.top_k.data_ptr(),
                draws.top_p.data_ptr(),
                draws.min_p.data_ptr(),
                draws.uniform.data_ptr(),
                token_ids.data_ptr(),
            )
        )
        return token_ids


def _check_vocab(size: int) -> None:
    if size > MAX_VOCAB:
        raise ValueError(f"the cpu backend takes vocabularies of at most {MAX_VOCAB} tokens, not {size}")
