from collections.abc import Callable

import pytest
import torch

from octavo_kernels.linear import DenseLinear
from octavo_kernels.ops import AttentionShape, CacheShape
from octavo_kernels.reference_backend import ReferenceBackend, ReferenceOps
from octavo_kernels.torch_cpu_backend import TorchCpuBackend, TorchCpuOps

SHAPE = AttentionShape(4, 2, 16, 0.25, None)


def test_every_op_gives_what_the_reference_gives(make_batch: Callable, make_cache: Callable) -> None:
    batch, num_blocks = make_batch([(3, 3), (1, 9)], 8)
    backend = TorchCpuBackend(num_threads=1)
    caches = [make_cache(SHAPE, num_blocks, 8, torch.float32) for _ in range(2)]
    plain, fast = ReferenceOps(batch, caches[0]), TorchCpuOps(batch, caches[1])
    table, weight, bias = torch.randn(10, 128), torch.randn(24, 128), torch.randn(24)
    x, norm = plain.embedding(DenseLinear(table, None)), torch.randn(128)
    packed = backend.pack_linear(weight, bias)
    cos_sin = torch.randn(16, 16)
    pairs = [
        (x, fast.embedding(backend.pack_linear(table, None))),
        (plain.rms_norm(x, norm, 1e-5), fast.rms_norm(x, norm, 1e-5)),
        (plain.add_rms_norm(x, x, norm, 1e-5), fast.add_rms_norm(x, x, norm, 1e-5)),
        (plain.linear(x, DenseLinear(weight, bias)), fast.linear(x, packed)),
        (plain.rope_store(x, cos_sin, 1, SHAPE), fast.rope_store(x, cos_sin, 1, SHAPE)),
        (plain.paged_attention(x[:, :64], 1, SHAPE), fast.paged_attention(x[:, :64].contiguous(), 1, SHAPE)),
        (plain.silu_mul(x), fast.silu_mul(x)),
        (plain.logits_rows(x), fast.logits_rows(x)),
    ]
    for expected, actual in pairs:
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(caches[1].k, caches[0].k)


def test_bf16_weights_give_products_within_their_precision() -> None:
    weight, x = torch.randn(24, 64).bfloat16(), torch.randn(3, 64)
    product = TorchCpuBackend(num_threads=1).pack_linear(weight, None).multiply(x)
    assert product.dtype is torch.float32
    torch.testing.assert_close(product, x @ weight.float().T, atol=0.2, rtol=0.02)


def test_a_weight_packed_by_another_backend_is_refused(make_batch: Callable) -> None:
    batch, num_blocks = make_batch([(1, 1)], 8)
    cache = ReferenceBackend().allocate_kv_cache(CacheShape(1, num_blocks, 8, 2, 16, torch.float32))
    with pytest.raises(TypeError, match="not DenseLinear"):
        TorchCpuOps(batch, cache).linear(torch.zeros(1, 4), DenseLinear(torch.zeros(2, 4), None))
