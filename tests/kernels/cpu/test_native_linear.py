"""The native matrix product on every instruction set: right for ragged shapes, and the same for a row in any company."""

from typing import Any

import pytest
import torch

from octavo_kernels.cpu.backend import CpuBackend
from octavo_kernels.cpu.native import Isa, available_isas
from octavo_kernels.ops import Batch, CacheShape, Ops

pytestmark = pytest.mark.skipif(not available_isas(), reason="the native CPU kernels are not built")

EVERY_ISA = pytest.mark.parametrize("isa", available_isas(), ids=lambda isa: isa.name.lower())
ROWS = (1, 2, 3, 7, 12, 13, 33, 130)


def multiply(backend: CpuBackend, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """x [M, K] (exact in bfloat16) @ weight.T + bias through a program of its own."""
    rows, features = x.shape[0], weight.shape[0]
    table, packed = backend.pack_linear(x, None), backend.pack_linear(weight, bias)

    def forward(ops: Ops[Any]) -> Any:
        return ops.linear(ops.logits_rows(ops.embedding(table)), packed)

    cache = backend.allocate_kv_cache(CacheShape(1, 1, 8, 1, 32, torch.float32))
    step = backend.compile(forward, cache, features)
    numbers = torch.arange(rows, dtype=torch.int32)
    one = torch.zeros(1, dtype=torch.int32)
    return step(Batch(numbers, numbers, numbers, one, one, one.view(1, 1), numbers)).clone()


def random_case(rows: int, features: int, width: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(rows + features + width)
    x, weight = torch.randn(rows, width).bfloat16().float(), torch.randn(features, width).bfloat16().float()
    return x, weight, torch.randn(features)


@EVERY_ISA
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(("features", "width"), [(1, 1), (16, 33), (33, 2), (50, 65), (96, 64), (130, 1024)])
@pytest.mark.parametrize("threads", [1, 2])
def test_products_of_ragged_shapes_are_right(
    isa: Isa, dtype: torch.dtype, features: int, width: int, threads: int
) -> None:
    backend = CpuBackend(threads, dtype, isa)
    for rows in ROWS:
        x, weight, bias = random_case(rows, features, width)
        expected = x.double() @ weight.double().T
        torch.testing.assert_close(multiply(backend, x, weight, None), expected.float(), atol=1e-3, rtol=1e-5)
        expected += bias.double()
        torch.testing.assert_close(multiply(backend, x, weight, bias), expected.float(), atol=1e-3, rtol=1e-5)


@EVERY_ISA
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_a_row_has_the_same_result_whatever_the_number_of_rows_and_threads(isa: Isa, dtype: torch.dtype) -> None:
    x, weight, bias = random_case(130, 70, 300)
    whole = multiply(CpuBackend(2, dtype, isa), x, weight, bias)
    one_thread = CpuBackend(1, dtype, isa)
    for rows in ROWS:
        assert torch.equal(multiply(one_thread, x[:rows], weight, bias), whole[:rows])
        assert torch.equal(multiply(one_thread, x[-rows:], weight, bias), whole[-rows:])


@pytest.mark.skipif(not {Isa.AVX2, Isa.AVX512} <= set(available_isas()), reason="needs AVX-512")
def test_avx2_and_avx512_sum_in_the_same_order() -> None:
    x, weight, bias = random_case(33, 70, 301)
    results = [multiply(CpuBackend(1, torch.bfloat16, isa), x, weight, bias) for isa in (Isa.AVX2, Isa.AVX512)]
    assert torch.equal(*results)


def test_float16_weights_are_kept_as_float32() -> None:
    backend = CpuBackend(1, torch.float16)
    x, weight, _ = random_case(3, 20, 40)
    half = weight.half() * 1.001
    expected = x @ half.float().T
    torch.testing.assert_close(multiply(backend, x, half, None), expected, atol=1e-4, rtol=1e-5)
