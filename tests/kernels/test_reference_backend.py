from collections.abc import Callable
from typing import Any

import pytest
import torch

from octavo_kernels.linear import DenseLinear
from octavo_kernels.ops import CacheShape, Ops
from octavo_kernels.reference_backend import ReferenceBackend
from octavo_kernels.torch_cpu_backend import OneDnnLinear


def test_a_forward_becomes_a_step_that_gives_the_wanted_logits(make_batch: Callable) -> None:
    batch, num_blocks = make_batch([(3, 3)], 8)
    backend = ReferenceBackend()
    table = backend.pack_linear(torch.randn(7, 5), None)
    cache = backend.allocate_kv_cache(CacheShape(1, num_blocks, 8, 1, 4, torch.float32))

    def forward(ops: Ops[Any]) -> Any:
        return ops.linear(ops.logits_rows(ops.embedding(table)), table)

    logits = backend.compile(forward, cache, 7)(batch)
    torch.testing.assert_close(logits, (table.weight @ table.weight.T)[2:3])


def test_a_weight_packed_by_another_backend_is_refused(make_batch: Callable) -> None:
    batch, num_blocks = make_batch([(1, 1)], 8)
    backend = ReferenceBackend()
    cache = backend.allocate_kv_cache(CacheShape(1, num_blocks, 8, 1, 4, torch.float32))
    packed = OneDnnLinear(torch.zeros(2, 4), None)
    with pytest.raises(TypeError, match="not OneDnnLinear"):
        backend.compile(lambda ops: ops.embedding(packed), cache, 4)(batch)
    assert isinstance(backend.pack_linear(torch.zeros(1, 1), None), DenseLinear)
