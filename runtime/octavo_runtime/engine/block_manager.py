"""`BlockManager`: block tables of sequences over a device pool and a host pool (swap space).

Allocates a prompt's blocks on top of what the prefix cache has, grows tables as tokens are computed, shares tables
between forked sequences and copies a shared partial block before it is written, moves groups to host blocks and back.
It plans these moves; the worker carries them out. Invariant: a block that a sequence will write is held by that
sequence alone.
"""

from collections.abc import Iterable
from collections.abc import Sequence as ReadOnly
from enum import StrEnum

from octavo_runtime.engine.block_pool import BlockPool
from octavo_runtime.engine.cache_demand import worst_case_blocks
from octavo_runtime.engine.config import CacheConfig
from octavo_runtime.engine.prefix_cache import PrefixCache, block_hash
from octavo_runtime.engine.sequence import NEVER_REGISTER, Sequence, SequenceGroup

Work = ReadOnly[tuple[Sequence, int]]
"""Sequences of one group and the number of tokens that each computes in a step."""


class AllocStatus(StrEnum):
    """OK: now. LATER: not now, other groups hold the room. NEVER: larger than the whole cache."""

    OK = "ok"
    LATER = "later"
    NEVER = "never"


class CopyOnWrite:
    """A partial block that a forked sequence gets for itself; undone if the step drops the group."""

    __slots__ = ("destination", "sequence", "source")

    def __init__(self, sequence: Sequence, source: int, destination: int) -> None:
        self.sequence = sequence
        self.source = source
        self.destination = destination


class BlockManager:
    """Who holds which block. All counts are in blocks unless named tokens."""

    def __init__(self, config: CacheConfig, watermark: float) -> None:
        self.block_size = config.block_size
        self.num_blocks = config.num_blocks
        self.num_host_blocks = config.num_host_blocks
        self.num_queried_tokens = 0
        self.num_hit_tokens = 0
        self._watermark = int(watermark * config.num_blocks)
        self._cache = PrefixCache() if config.prefix_caching else None
        self._device = BlockPool(config.num_blocks, self._cache)
        self._host = BlockPool(config.num_host_blocks)
        self._leaving_host: list[int] = []  # swapped in by the step in the making, still to be read
        self._promised: dict[bytes, Sequence] = {}  # prompt blocks that somebody is computing

    @property
    def num_free_blocks(self) -> int:
        return self._device.num_free

    @property
    def num_free_host_blocks(self) -> int:
        return self._host.num_free

    def blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold `num_tokens` tokens."""
        return -(-num_tokens // self.block_size)

    # Admission

    def worst_case(self, group: SequenceGroup) -> int:
        """Blocks that the group may come to need."""
        return worst_case_blocks(group.num_prompt, group.params.num_sequences, group.stop.max_tokens, self.block_size)

    def can_allocate(self, group: SequenceGroup) -> AllocStatus:
        """Whether the leader's whole prompt, and its siblings' first blocks, fit on top of what is cached.

        Leaves the number of cached blocks in `group.num_hit_blocks` for `allocate`.
        """
        if self.worst_case(group) > self.num_blocks:
            return AllocStatus.NEVER
        hits = self._find_prefix(group)
        group.num_hit_blocks = len(hits)
        demand = self._demand(group) - len(hits)
        demand += sum(self._device.ref_counts[block] == 0 for block in hits)
        num_free = self._device.num_free
        if num_free < self.num_blocks:  # the watermark keeps room for those that run; alone, a group may take all
            demand += self._watermark
        return AllocStatus.OK if demand <= num_free else AllocStatus.LATER

    def allocate(self, group: SequenceGroup) -> None:
        """Give the leader its blocks, cached (so: computed) ones first. After `can_allocate` said OK."""
        leader = group.leader
        hits = self._find_prefix(group)
        for block in hits:
            self._device.share(block)
        leader.block_table = hits.copy()
        leader.num_computed = len(hits) * self.block_size
        leader.num_registered = len(hits)
        self._rearm(leader)
        if group.num_cached_tokens is None:
            group.num_cached_tokens = leader.num_computed
            if self._reads_cache(group):
                self.num_queried_tokens += group.num_prompt
                self.num_hit_tokens += leader.num_computed
        self._extend(leader, group.target(leader))
        self._promise(group, len(hits))

    def awaits_prefix(self, group: SequenceGroup) -> bool:
        """Whether a running group is computing the next block of the same prompt: waiting for it costs less."""
        if not self._promised or not self._reads_cache(group):
            return False
        position = len(self._find_prefix(group))
        if position >= (group.target(group.leader) - 1) // self.block_size:
            return False
        return self._hash(group, group.leader, position) in self._promised

    def _promise(self, group: SequenceGroup, first: int) -> None:
        if self._cache is not None:
            for position in range(first, group.num_prompt // self.block_size):
                self._promised.setdefault(self._hash(group, group.leader, position), group.leader)

    def _break_promises(self, sequence: Sequence) -> None:
        if self._promised:
            for digest in sequence.block_hashes[sequence.num_registered :]:
                if self._promised.get(digest) is sequence:
                    del self._promised[digest]

    def _demand(self, group: SequenceGroup) -> int:
        """Blocks to admit `group` with nothing cached: prompt, recomputed outputs, and each sibling's partial block."""
        if group.forked:
            return self.blocks_for(len(group.leader.token_ids))
        if len(group.live) == 1:
            siblings = group.num_seats - 1 if group.stop.max_tokens > 1 else 0
            return min(self.blocks_for(group.num_prompt) + siblings, self.worst_case(group))
        shared = group.num_prompt // self.block_size
        return shared + sum(self.blocks_for(len(sequence.token_ids)) - shared for sequence in group.live)

    def _reads_cache(self, group: SequenceGroup) -> bool:
        return self._cache is not None and group.prompt_logprobs is None

    def _find_prefix(self, group: SequenceGroup) -> list[int]:
        """Cached blocks of the leader's history; at least one token is left to compute."""
        if self._cache is None or not self._reads_cache(group):
            return []
        leader, hits = group.leader, []
        for position in range((group.target(leader) - 1) // self.block_size):
            block = self._cache.find(self._hash(group, leader, position))
            if block is None:
                break
            hits.append(block)
        return hits

    # Growth

    def blocks_needed(self, work: Work) -> int:
        """Free blocks that `grow` takes for sequences of one group: new ones and copies of shared partial ones."""
        needed = 0
        writers: dict[int, int] = {}
        for sequence, num_tokens in work:
            needed += max(0, self.blocks_for(sequence.num_computed + num_tokens) - len(sequence.block_table))
            shared = self._shared_partial_block(sequence)
            if shared is not None:
                writers[shared] = writers.get(shared, 0) + 1
        for block, count in writers.items():  # the last holder writes in place
            needed += min(count, self._device.ref_counts[block] - 1)
        return needed

    def grow(self, work: Work) -> list[CopyOnWrite]:
        """Make room for the tokens that each sequence computes, in blocks of its own. Needs `blocks_needed` free."""
        copies = []
        for sequence, num_tokens in work:
            source = self._shared_partial_block(sequence)
            if source is not None:
                copy = CopyOnWrite(sequence, source, self._device.allocate())
                sequence.block_table[sequence.num_computed // self.block_size] = copy.destination
                self._device.free(source)
                copies.append(copy)
            self._extend(sequence, sequence.num_computed + num_tokens)
        return copies

    def undo(self, copies: Iterable[CopyOnWrite]) -> None:
        """Take back copies that no step will carry out; tables are as before `grow`, but for blocks at their end."""
        for copy in copies:
            self._device.share(copy.source)
            copy.sequence.block_table[copy.sequence.num_computed // self.block_size] = copy.source
            self._device.free(copy.destination)

    def has_slot(self, sequence: Sequence) -> bool:
        """Whether one more token can be computed without a new block (the quick answer for a group of one sequence)."""
        return sequence.num_computed < len(sequence.block_table) * self.block_size

    def _extend(self, sequence: Sequence, num_tokens: int) -> None:
        table, allocate = sequence.block_table, self._device.allocate
        for _ in range(self.blocks_for(num_tokens) - len(table)):
            table.append(allocate())

    def _shared_partial_block(self, sequence: Sequence) -> int | None:
        """The block that the next token goes to, if others hold it as well."""
        position = sequence.num_computed // self.block_size
        if position >= len(sequence.block_table):
            return None
        block = sequence.block_table[position]
        return block if self._device.ref_counts[block] > 1 else None

    def fork(self, parent: Sequence, child: Sequence) -> None:
        """Let `child` hold the parent's computed blocks as well; nothing is copied before somebody writes."""
        used = self.blocks_for(parent.num_computed)
        child.block_table = parent.block_table[:used]
        for block in child.block_table:
            self._device.share(block)
        child.num_computed = parent.num_computed
        child.block_hashes = parent.block_hashes[: child.num_computed // self.block_size]
        child.num_registered = min(parent.num_registered, len(child.block_hashes))
        self._rearm(child)

    def free(self, sequence: Sequence) -> None:
        """Give back all that `sequence` holds, on device and host."""
        self._break_promises(sequence)
        self._device.free_all(reversed(sequence.block_table))
        self._host.free_all(sequence.host_table)
        sequence.block_table = []
        sequence.host_table = []

    # Prefix cache

    def register(self, group: SequenceGroup, sequence: Sequence) -> None:
        """Make blocks that have become full and computed findable for others."""
        if self._cache is None:
            return
        num_full = sequence.num_computed // self.block_size
        for position in range(sequence.num_registered, num_full):
            digest = self._hash(group, sequence, position)
            self._cache.register(digest, sequence.block_table[position])
            self._promised.pop(digest, None)
        sequence.num_registered = max(num_full, sequence.num_registered)
        self._rearm(sequence)

    def reset_prefix_cache(self) -> None:
        """Forget every cached block that no sequence holds."""
        self._device.forget_cached()

    def _rearm(self, sequence: Sequence) -> None:
        if self._cache is None:
            sequence.register_at = NEVER_REGISTER
        else:
            sequence.register_at = (sequence.num_registered + 1) * self.block_size

    def _hash(self, group: SequenceGroup, sequence: Sequence, position: int) -> bytes:
        """Hash of the sequence's full block at `position`; the chain is extended as far as needed."""
        hashes, size = sequence.block_hashes, self.block_size
        while len(hashes) <= position:
            start = len(hashes) * size
            parent = hashes[-1] if hashes else group.root_hash
            hashes.append(block_hash(parent, sequence.token_ids[start : start + size]))
        return hashes[position]

    # Swap space

    def can_swap_out(self, group: SequenceGroup) -> bool:
        """Whether swap space has room for everything the group has computed."""
        held = {block for sequence in group.live for block in self._computed_blocks(sequence)}
        return 0 < len(held) <= self._host.num_free

    def swap_out(self, group: SequenceGroup) -> list[tuple[int, int]]:
        """Move the group to host memory: (device, host) pairs, a shared block once. Its device blocks are free now."""
        moved: dict[int, int] = {}
        for sequence in group.live:
            for block in self._computed_blocks(sequence):
                if block in moved:
                    self._host.share(moved[block])
                else:
                    moved[block] = self._host.allocate()
                sequence.host_table.append(moved[block])
        for sequence in group.live:
            self._break_promises(sequence)
            self._device.free_all(reversed(sequence.block_table))
            sequence.block_table = []
        return list(moved.items())

    def can_swap_in(self, group: SequenceGroup) -> bool:
        """Whether the group's blocks and its next step fit on the device."""
        holders: dict[int, int] = {}
        demand = 0
        for sequence in group.live:
            for block in sequence.host_table:
                holders[block] = holders.get(block, 0) + 1
            demand += max(0, self.blocks_for(group.target(sequence)) - len(sequence.host_table))
        demand += len(holders)
        if len(group.live) > 1:  # partial blocks that will be copied before they are written
            tails = {seq.host_table[-1] for seq in group.live if seq.num_computed % self.block_size}
            demand += sum(holders[block] - 1 for block in tails)
        num_free = self._device.num_free
        if num_free < self.num_blocks:
            demand += self._watermark
        return demand <= num_free

    def swap_in(self, group: SequenceGroup) -> list[tuple[int, int]]:
        """Move the group back: (host, device) pairs. Its host blocks are free after `end_step`."""
        moved: dict[int, int] = {}
        for sequence in group.live:
            for block in sequence.host_table:
                if block in moved:
                    self._device.share(moved[block])
                else:
                    moved[block] = self._device.allocate()
                sequence.block_table.append(moved[block])
            self._leaving_host.extend(sequence.host_table)
            sequence.host_table = []
            sequence.num_registered = 0
            self._rearm(sequence)
        return list(moved.items())

    def end_step(self) -> None:
        """The planned moves have happened: host blocks that were read may be overwritten."""
        self._host.free_all(self._leaving_host)
        self._leaving_host.clear()

    def _computed_blocks(self, sequence: Sequence) -> list[int]:
        return sequence.block_table[: self.blocks_for(sequence.num_computed)]
