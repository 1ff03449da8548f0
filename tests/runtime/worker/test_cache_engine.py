import torch

from octavo_kernels.ops import CacheShape
from octavo_kernels.reference_backend import ReferenceBackend
from octavo_runtime.engine.plan import StepPlan
from octavo_runtime.worker.cache_engine import CacheEngine


def make_engine(num_blocks: int = 200, num_host_blocks: int = 150) -> CacheEngine:
    engine = CacheEngine(ReferenceBackend(), CacheShape(2, num_blocks, 8, 2, 4, torch.float32), num_host_blocks)
    for block in range(num_blocks):
        engine.cache.k[:, block], engine.cache.v[:, block] = block, -block
    return engine


def contents(engine: CacheEngine, block: int) -> tuple[float, float]:
    k, v = engine.cache.k[:, block], engine.cache.v[:, block]
    assert bool((k == k.flatten()[0]).all())
    assert bool((v == v.flatten()[0]).all())
    return float(k.flatten()[0]), float(v.flatten()[0])


def test_blocks_come_back_from_swap_space_elsewhere() -> None:
    engine = make_engine()
    engine.swap_out([(i, 149 - i) for i in range(100)])
    engine.cache.k.zero_()
    engine.cache.v.zero_()
    engine.swap_in([(149 - i, i + 50) for i in range(100)])
    assert [contents(engine, i + 50) for i in range(100)] == [(float(i), float(-i)) for i in range(100)]


def test_copies_leave_the_source_as_it_is() -> None:
    engine = make_engine()
    engine.copy([(3, 7), (3, 9), (4, 8)])
    assert [contents(engine, block)[0] for block in (3, 4, 7, 8, 9)] == [3, 4, 3, 4, 3]


def test_a_plan_swaps_out_before_it_swaps_in_and_copies_last() -> None:
    engine = make_engine()
    engine.move(StepPlan((), swap_out=((5, 0),)))
    engine.move(StepPlan((), swap_out=((6, 1),), swap_in=((0, 6),), copy=((6, 10),)))
    assert contents(engine, 6)[0] == 5
    assert contents(engine, 10)[0] == 5
    engine.swap_in([(1, 11)])
    assert contents(engine, 11)[0] == 6
