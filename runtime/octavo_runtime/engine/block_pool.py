"""`BlockPool`: which physical blocks are free, and how many sequences hold each of the others.

Freed blocks whose content the prefix cache knows stay readable until they are needed: plain free blocks are given out
first, then the least recently used cached one. All operations are O(1). Knows no tokens and no sequences.
"""

from collections.abc import Iterable

from octavo_runtime.engine.prefix_cache import PrefixCache


class BlockPool:
    """Physical blocks 0 ... num_blocks - 1 with reference counts. `cache` None: nothing is kept after it is freed."""

    __slots__ = ("_cache", "_free", "num_blocks", "ref_counts")

    def __init__(self, num_blocks: int, cache: PrefixCache | None = None) -> None:
        self.num_blocks = num_blocks
        self.ref_counts = [0] * num_blocks
        self._free = list(range(num_blocks - 1, -1, -1))  # a stack: the last freed block is the warmest in memory
        self._cache = cache

    @property
    def num_free(self) -> int:
        """Blocks that `allocate` can still give, evictable ones included."""
        return len(self._free) + (len(self._cache.idle) if self._cache is not None else 0)

    def allocate(self) -> int:
        """A block with reference count 1 and content to be overwritten. The caller checked `num_free`."""
        if self._free:
            block = self._free.pop()
        elif self._cache is not None and self._cache.idle:
            block = self._cache.evict()
        else:
            raise IndexError("no free block")
        self.ref_counts[block] = 1
        return block

    def share(self, block: int) -> None:
        """One more holder of `block`; a cached block that nobody held comes back to life."""
        if self.ref_counts[block] == 0 and self._cache is not None:
            self._cache.revive(block)
        self.ref_counts[block] += 1

    def free(self, block: int) -> None:
        """One holder less; the last one gives the block back."""
        count = self.ref_counts[block] - 1
        if count < 0:
            raise ValueError(f"block {block} is free already")
        self.ref_counts[block] = count
        if count == 0:
            if self._cache is not None and self._cache.holds(block):
                self._cache.retire(block)
            else:
                self._free.append(block)

    def free_all(self, blocks: Iterable[int]) -> None:
        """Free blocks of one sequence. Give them last block first, so that tails are evicted before their prefix."""
        for block in blocks:
            self.free(block)

    def forget_cached(self) -> None:
        """Turn every evictable block into a plain free one."""
        if self._cache is not None:
            self._free.extend(self._cache.drop_idle())
