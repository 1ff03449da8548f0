from collections.abc import Callable

import pytest
import torch

from octavo_kernels.ops import AttentionShape
from octavo_kernels.paged_attention import gather_context
from octavo_kernels.rope_store import rope_store_reference

SHAPE = AttentionShape(4, 2, 8, 1.0, None)


def table(num_positions: int) -> torch.Tensor:
    angles = torch.arange(num_positions)[:, None] / 10 ** torch.arange(4)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rotation_is_that_of_complex_numbers_and_slots_hold_k_and_v(
    make_batch: Callable, make_cache: Callable, dtype: torch.dtype
) -> None:
    batch, num_blocks = make_batch([(5, 5), (1, 19), (3, 12)], 8)
    cache = make_cache(SHAPE, num_blocks, 8, dtype, fill=float("nan"))
    qkv = torch.randn(9, 8 * 8)
    cos_sin = table(32)
    q = rope_store_reference(qkv, cos_sin, 1, SHAPE, batch, cache)
    heads = qkv.view(9, 8, 8)
    turn = torch.polar(torch.ones(9, 4), torch.arange(32)[batch.positions.long(), None] / 10 ** torch.arange(4))
    numbers = torch.complex(heads[..., :4], heads[..., 4:]) * turn[:, None]
    rotated = torch.cat([numbers.real, numbers.imag], dim=-1)
    torch.testing.assert_close(q.view(9, 4, 8), rotated[:, :4], atol=1e-5, rtol=1e-5)
    k, v = gather_context(cache, 1, batch.block_tables[2], 12)
    torch.testing.assert_close(k[:, -3:].transpose(0, 1), rotated[6:, 4:6].to(dtype).float(), atol=1e-5, rtol=1e-2)
    torch.testing.assert_close(v[:, -3:].transpose(0, 1), heads[6:, 6:].to(dtype).float())
    assert bool(k[:, :-3].isnan().all())  # nothing else was written
    assert bool(cache.k[0].isnan().all())
