"""Native ops called on their own, outside a program: for tests against the references and for benchmarks.

Same arguments as the `<op>_reference` functions, plus the `Engine` that computes.
"""

from typing import Any

import torch

from octavo_kernels.cpu.native import Engine, OpCode, OpStruct, Rows, ValueStruct
from octavo_kernels.cpu.run_args import batch_struct, run_struct
from octavo_kernels.ops import AttentionShape, Batch, KVCache


def paged_attention_native(
    engine: Engine, q: torch.Tensor, layer: int, shape: AttentionShape, batch: Batch, cache: KVCache
) -> torch.Tensor:
    """q [T, heads * D] float32 -> [T, heads * D] float32.

    :raises ValueError: when the batch names blocks that do not exist or its rows do not cover the tokens
    """
    arena = attention_arena(q)
    run_attention(engine, arena, [layer], shape, batch, cache)
    return arena[1]


def attention_arena(q: torch.Tensor) -> torch.Tensor:
    """[2, T, heads * D]: q, and room for the output, NaN until it is written."""
    arena = torch.full((2, *q.shape), float("nan"))
    arena[0] = q
    return arena


def run_attention(
    engine: Engine, arena: torch.Tensor, layers: list[int], shape: AttentionShape, batch: Batch, cache: KVCache
) -> None:
    """Attention of arena[0] on each layer in turn, every time into arena[1]; one call of the library."""
    width = arena.shape[2]
    ops: Any = (OpStruct * len(layers))()
    for op, layer in zip(ops, layers, strict=True):
        op.code = OpCode.PAGED_ATTENTION
        op.input = ValueStruct(0, 0, width, width, Rows.TOKENS)
        op.out = ValueStruct(width, 0, width, width, Rows.TOKENS)
        op.layer = layer
        op.num_heads = shape.num_heads
        op.sliding_window = shape.sliding_window or 0
        op.scale = shape.scale
    args = run_struct(cache)
    args.batch = batch_struct(batch)
    args.token_arena = arena.data_ptr()
    engine.run(ops, args)
