"""Recorded programs on every instruction set of the machine against the reference backend's ops.

One program holds every op; shapes fill no vector and no panel, and activation memory starts as NaN.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from octavo_kernels.cpu import program as program_module
from octavo_kernels.cpu.backend import CpuBackend
from octavo_kernels.cpu.native import MAX_VOCAB, available_isas
from octavo_kernels.ops import AttentionShape, Batch, CacheShape, Ops
from octavo_kernels.reference_backend import ReferenceBackend

pytestmark = pytest.mark.skipif(not available_isas(), reason="the native CPU kernels are not built")

EVERY_ISA = pytest.mark.parametrize("isa", available_isas(), ids=lambda isa: isa.name.lower())
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 4e-2}  # a bfloat16 cache rounds k and v of slightly different sums
BLOCK_SIZE = 8


def int32(values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def make_batch(rows: list[tuple[int, int]], vocab: int = 50) -> Batch:
    """Rows of (queries, context); row r has the same blocks in every batch and wants the logits of its last token."""
    positions, slots, starts, last = [], [], [0], []
    blocks = 6
    for row, (queries, context) in enumerate(rows):
        positions += range(context - queries, context)
        slots += [row * blocks * BLOCK_SIZE + position for position in range(context - queries, context)]
        starts.append(len(positions))
        last.append(len(positions) - 1)
    tables = torch.arange(len(rows) * blocks, dtype=torch.int32).view(len(rows), blocks)
    token_ids = [(7 * position + 3) % vocab for position in range(len(positions))]
    contexts = [context for _, context in rows]
    return Batch(*map(int32, (token_ids, positions, slots, starts, contexts)), tables, int32(last))


class TinyModel:
    """One layer with every op, biases included."""

    def __init__(self, backend: Any, dtype: torch.dtype, hidden: int = 40, head_dim: int = 32) -> None:
        torch.manual_seed(0)
        self.shape = AttentionShape(4, 2, head_dim, head_dim**-0.5, 5)
        self.dtype = dtype
        inner = 36

        def linear(n: int, k: int, bias: bool = False) -> Any:
            weight = (torch.randn(n, k) / k**0.5).to(dtype)
            return backend.pack_linear(weight, torch.randn(n).to(dtype) if bias else None)

        self.table = linear(50, hidden)
        self.qkv = linear(8 * head_dim, hidden, bias=True)
        self.o = linear(hidden, 4 * head_dim)
        self.gate_up = linear(2 * inner, hidden)
        self.down = linear(hidden, inner, bias=True)
        self.norm = torch.rand(hidden)
        self.q_norm, self.k_norm = torch.rand(head_dim), torch.rand(head_dim)
        angle = torch.arange(64)[:, None] * torch.rand(head_dim // 2)
        self.cos_sin = torch.cat([angle.cos(), angle.sin()], dim=1)
        self.cache = CacheShape(1, 64, BLOCK_SIZE, 2, head_dim, dtype)

    def forward(self, ops: Ops[Any]) -> Any:
        residual = ops.embedding(self.table)
        qkv = ops.linear(ops.rms_norm(residual, self.norm, 1e-5), self.qkv)
        qkv = ops.qk_norm(qkv, self.q_norm, self.k_norm, 1e-6, self.shape)
        q = ops.rope_store(qkv, self.cos_sin, 0, self.shape)
        attended = ops.linear(ops.paged_attention(q, 0, self.shape), self.o)
        x, residual = ops.add_rms_norm(attended, residual, self.norm, 1e-5)
        mlp = ops.linear(ops.silu_mul(ops.linear(x, self.gate_up)), self.down)
        x, _ = ops.add_rms_norm(mlp, residual, self.norm, 1e-5)
        return ops.linear(ops.logits_rows(x), self.table)


def compiled(backend: Any, dtype: torch.dtype, head_dim: int = 32) -> Callable[[Batch], torch.Tensor]:
    model = TinyModel(backend, dtype, head_dim=head_dim)
    return backend.compile(model.forward, backend.allocate_kv_cache(model.cache), 50)


@pytest.fixture(autouse=True)
def nan_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Activations that nobody wrote are NaN."""

    def allocate(memory: torch.Tensor, num_elements: int) -> torch.Tensor:
        return torch.full((num_elements,), float("nan"), dtype=memory.dtype)

    monkeypatch.setattr(program_module, "_at_least", allocate)


@EVERY_ISA
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("head_dim", [32, 20])
def test_prefill_and_decode_give_the_logits_of_the_reference(
    isa: Any, threads: int, dtype: torch.dtype, head_dim: int
) -> None:
    native = compiled(CpuBackend(threads, dtype, isa), dtype, head_dim)
    reference = compiled(ReferenceBackend(), dtype, head_dim)
    for rows in ([(1, 1), (7, 7), (33, 33)], [(1, 2), (1, 8), (1, 34)], [(3, 5), (1, 9)]):
        batch = make_batch(rows)
        torch.testing.assert_close(native(batch), reference(batch), atol=TOLERANCE[dtype], rtol=1e-4)


@EVERY_ISA
def test_a_row_has_the_same_logits_alone_and_in_a_batch(isa: Any) -> None:
    step = compiled(CpuBackend(2, torch.bfloat16, isa), torch.bfloat16)
    alone = step(make_batch([(9, 9)])).clone()
    together = step(make_batch([(9, 9), (40, 40), (1, 1)]))
    assert torch.equal(alone[0], together[0])


def test_a_step_without_logits_rows_gives_no_logits() -> None:
    step = compiled(CpuBackend(2, torch.float32), torch.float32)
    batch = make_batch([(4, 4)])
    empty = Batch(batch.token_ids, batch.positions, batch.slots, batch.query_start, batch.context_len, batch.block_tables,
                  int32([]))  # fmt: skip
    assert step(empty).shape == (0, 50)


@pytest.mark.parametrize(
    ("field", "bad", "message"),
    [
        ("token_ids", [50, 0, 0], "token id"),
        ("token_ids", [-1, 0, 0], "token id"),
        ("positions", [0, 1, 64], "position"),
        ("slots", [0, 1, 64 * BLOCK_SIZE], "slot"),
        ("query_start", [0, 2], "query_start"),
        ("context_len", [2], "context_len"),
        ("context_len", [49], "block table"),
        ("block_tables", [[64]], "block table"),
        ("logits_rows", [3], "logits row"),
    ],
)
def test_a_batch_that_points_outside_is_refused(field: str, bad: list[int], message: str) -> None:
    step = compiled(CpuBackend(1, torch.float32), torch.float32)
    names = ("token_ids", "positions", "slots", "query_start", "context_len", "block_tables", "logits_rows")
    batch = make_batch([(3, 3)])
    fields = {name: getattr(batch, name) for name in names} | {field: int32(bad)}
    with pytest.raises(ValueError, match=message):
        step(Batch(**fields))


def test_a_batch_of_another_dtype_is_refused() -> None:
    step = compiled(CpuBackend(1, torch.float32), torch.float32)
    batch = make_batch([(3, 3)])
    wide = Batch(batch.token_ids.long(), batch.positions, batch.slots, batch.query_start, batch.context_len,
                 batch.block_tables, batch.logits_rows)  # fmt: skip
    with pytest.raises(ValueError, match="token_ids must be contiguous int32"):
        step(wide)


def test_a_vocabulary_that_sampling_has_no_room_for_is_refused_before_anything_runs() -> None:
    backend = CpuBackend(1, torch.float32)
    model = TinyModel(backend, torch.float32)
    with pytest.raises(ValueError, match=f"at most {MAX_VOCAB} tokens"):
        backend.compile(model.forward, backend.allocate_kv_cache(model.cache), MAX_VOCAB + 1)
