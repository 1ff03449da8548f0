import pytest

from octavo_runtime.engine.block_pool import BlockPool
from octavo_runtime.engine.prefix_cache import PrefixCache


def test_every_block_is_given_once() -> None:
    pool = BlockPool(4)
    assert sorted(pool.allocate() for _ in range(4)) == [0, 1, 2, 3]
    assert pool.num_free == 0
    with pytest.raises(IndexError):
        pool.allocate()


def test_a_shared_block_is_free_after_its_last_holder() -> None:
    pool = BlockPool(1)
    block = pool.allocate()
    pool.share(block)
    pool.free(block)
    assert pool.num_free == 0
    pool.free(block)
    assert pool.num_free == 1


def test_freeing_twice_is_an_error() -> None:
    pool = BlockPool(1)
    block = pool.allocate()
    pool.free(block)
    with pytest.raises(ValueError, match="free already"):
        pool.free(block)


def test_a_cached_block_counts_as_free_and_can_be_taken_back() -> None:
    cache = PrefixCache()
    pool = BlockPool(2, cache)
    block = pool.allocate()
    cache.register(b"x", block)
    pool.free(block)
    assert pool.num_free == 2
    pool.share(block)
    assert (pool.num_free, pool.ref_counts[block], cache.find(b"x")) == (1, 1, block)


def test_plain_blocks_are_used_before_cached_ones_and_the_oldest_cached_one_first() -> None:
    cache = PrefixCache()
    pool = BlockPool(3, cache)
    first, second, plain = (pool.allocate() for _ in range(3))
    cache.register(b"first", first)
    cache.register(b"second", second)
    pool.free_all([first, second, plain])
    assert [pool.allocate() for _ in range(3)] == [plain, first, second]
    assert len(cache) == 0


def test_forgetting_keeps_blocks_that_somebody_holds() -> None:
    cache = PrefixCache()
    pool = BlockPool(2, cache)
    held, idle = pool.allocate(), pool.allocate()
    cache.register(b"held", held)
    cache.register(b"idle", idle)
    pool.free(idle)
    pool.forget_cached()
    assert cache.find(b"held") == held
    assert cache.find(b"idle") is None
    assert pool.num_free == 1
