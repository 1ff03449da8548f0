"""Recording a forward: values that live at the same time do not share memory, and misuse is refused with its name."""

from typing import Any

import pytest
import torch

from octavo_kernels.cpu.backend import CpuBackend
from octavo_kernels.cpu.native import Rows, available_isas
from octavo_kernels.cpu.program_builder import Buffer, ProgramBuilder, plan_arena, record, row_stride
from octavo_kernels.ops import AttentionShape, CacheShape, Ops

pytestmark = pytest.mark.skipif(not available_isas(), reason="the native CPU kernels are not built")

CACHE = CacheShape(2, 4, 8, 1, 8, torch.float32)
SHAPE = AttentionShape(2, 1, 8, 1.0, None)


@pytest.fixture
def backend() -> CpuBackend:
    return CpuBackend(1, torch.float32)


def test_buffers_share_memory_only_when_not_alive_together() -> None:
    lives = [(0, 3), (1, 2), (2, 5), (4, 6), (6, 6)]
    buffers = [Buffer(Rows.TOKENS, 16 * (index + 1), first, last) for index, (first, last) in enumerate(lives)]
    width = plan_arena(buffers, Rows.TOKENS)
    for index, one in enumerate(buffers):
        assert one.start + one.stride <= width
        for other in buffers[index + 1 :]:
            if one.first <= other.last and other.first <= one.last:
                assert one.start + one.stride <= other.start or other.start + other.stride <= one.start
    assert width < sum(buffer.stride for buffer in buffers)


def test_rows_do_not_lie_a_multiple_of_4_kib_apart() -> None:
    assert [row_stride(width) for width in (1, 576, 1024, 2048, 8192)] == [16, 576, 1040, 2064, 8208]


def test_a_value_that_was_overwritten_is_refused(backend: CpuBackend) -> None:
    builder = ProgramBuilder(CACHE)
    residual = builder.embedding(backend.pack_linear(torch.zeros(10, 32), None))
    x = builder.rms_norm(residual, torch.ones(32), 1e-5)
    builder.add_rms_norm(x, residual, torch.ones(32), 1e-5)
    with pytest.raises(ValueError, match="overwritten"):
        builder.rms_norm(residual, torch.ones(32), 1e-5)


def test_shapes_that_do_not_fit_are_refused(backend: CpuBackend) -> None:
    builder = ProgramBuilder(CACHE)
    x = builder.embedding(backend.pack_linear(torch.zeros(10, 32), None))
    with pytest.raises(ValueError, match="width 32 and the weight takes 16"):
        builder.linear(x, backend.pack_linear(torch.zeros(8, 16), None))
    with pytest.raises(ValueError, match="the weight has shape"):
        builder.rms_norm(x, torch.ones(31), 1e-5)
    with pytest.raises(ValueError, match="layer 2"):
        builder.rope_store(x, torch.zeros(4, 8), 2, SHAPE)
    with pytest.raises(ValueError, match="other key-value heads"):
        builder.paged_attention(x, 0, AttentionShape(4, 4, 8, 1.0, None))


@pytest.mark.parametrize(("heads", "kv_heads"), [(3, 2), (129, 1)])
def test_query_heads_that_attention_cannot_share_out_are_refused(
    backend: CpuBackend, heads: int, kv_heads: int
) -> None:
    cache = CacheShape(1, 4, 8, kv_heads, 8, torch.float32)
    builder = ProgramBuilder(cache)
    x = builder.embedding(backend.pack_linear(torch.zeros(10, heads * 8), None))
    with pytest.raises(ValueError, match=f"{heads} query heads over {kv_heads} key-value heads.*at most 128"):
        builder.paged_attention(x, 0, AttentionShape(heads, kv_heads, 8, 1.0, None))


def test_weights_of_another_backend_are_refused() -> None:
    with pytest.raises(TypeError, match="NativeLinear"):
        ProgramBuilder(CACHE).embedding(torch.nn.Linear(2, 2))  # type: ignore[arg-type]


def test_a_forward_must_end_in_logits(backend: CpuBackend) -> None:
    table = backend.pack_linear(torch.zeros(10, 32), None)

    def no_rows(ops: Ops[Any]) -> Any:
        return ops.linear(ops.embedding(table), table)

    with pytest.raises(ValueError, match="must end in a linear of logits_rows with 10 columns"):
        record(no_rows, CACHE, 10)
