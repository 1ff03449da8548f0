from octavo_runtime.engine.prefix_cache import PrefixCache, block_hash, root_hash


def test_a_hash_depends_on_parent_and_tokens() -> None:
    root = root_hash(None)
    assert block_hash(root, [1, 2]) == block_hash(root, [1, 2])
    assert block_hash(root, [1, 2]) != block_hash(root, [2, 1])
    assert block_hash(block_hash(root, [1, 2]), [1, 2]) != block_hash(root, [1, 2])


def test_chains_of_different_salts_never_meet() -> None:
    salts = [None, "", "a", "b", "salt", "sal", "\ud800"]
    assert len({root_hash(salt) for salt in salts}) == len(salts)


def test_hashes_are_the_same_in_every_process() -> None:
    digest = block_hash(root_hash("tenant"), [1, 2, 3, 4])
    assert digest.hex() == "227edacb6f93d07c6d212dd660e06c2e27cdae969f6085309141c16ea7795b8b"


def test_the_first_block_with_a_content_stays_the_known_one() -> None:
    cache = PrefixCache()
    cache.register(b"x", 1)
    cache.register(b"x", 2)
    assert cache.find(b"x") == 1
    assert not cache.holds(2)


def test_a_revived_block_is_not_evicted() -> None:
    cache = PrefixCache()
    for block in (1, 2):
        cache.register(bytes([block]), block)
        cache.retire(block)
    cache.revive(1)
    assert cache.evict() == 2
    assert cache.find(bytes([1])) == 1
    assert cache.find(bytes([2])) is None


def test_retiring_again_makes_a_block_the_most_recently_used() -> None:
    cache = PrefixCache()
    for block in (1, 2):
        cache.register(bytes([block]), block)
        cache.retire(block)
    cache.revive(1)
    cache.retire(1)
    assert [cache.evict(), cache.evict()] == [2, 1]
