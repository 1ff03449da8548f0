"""`PrefixCache`: full, computed blocks by the hash of everything before and in them.

A block's hash is SHA-256 over its parent's hash and its tokens; a chain starts from a root that holds the typed extra
keys (today the salt), so equal text under another salt never meets. Holds no reference: `BlockPool` counts those and
calls `retire` and `revive`. Eviction is least recently used.
"""

import struct
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256


def root_hash(salt: str | None) -> bytes:
    """Where a hash chain starts: every extra key with its kind and length, so that no two encodings are equal."""
    keys: list[tuple[bytes, bytes]] = []
    if salt is not None:
        keys.append((b"salt", salt.encode("utf-8", "surrogatepass")))
    digest = sha256(b"octavo prefix root")
    for kind, value in keys:
        digest.update(struct.pack("<QQ", len(kind), len(value)) + kind + value)
    return digest.digest()


def block_hash(parent: bytes, token_ids: Sequence[int]) -> bytes:
    """Hash of a full block: 32 bytes of the parent, then its tokens as 64-bit little-endian numbers."""
    return sha256(parent + struct.pack(f"<{len(token_ids)}q", *token_ids)).digest()


class PrefixCache:
    """Hash -> block for every cached block, and the evictable ones (`idle`) in the order of their last use."""

    __slots__ = ("_blocks", "_hashes", "idle")

    def __init__(self) -> None:
        self._blocks: dict[bytes, int] = {}
        self._hashes: dict[int, bytes] = {}
        self.idle: OrderedDict[int, None] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._blocks)

    def holds(self, block: int) -> bool:
        return block in self._hashes

    def find(self, digest: bytes) -> int | None:
        """The block with this content, held by somebody or idle."""
        return self._blocks.get(digest)

    def register(self, digest: bytes, block: int) -> None:
        """Make a computed block findable. A second block with the same content stays uncached."""
        if digest not in self._blocks and block not in self._hashes:
            self._blocks[digest] = block
            self._hashes[block] = digest

    def retire(self, block: int) -> None:
        """Nobody holds `block` any more: it may be evicted, after those that were retired before."""
        self.idle[block] = None

    def revive(self, block: int) -> None:
        """Somebody holds `block` again."""
        self.idle.pop(block, None)

    def evict(self) -> int:
        """Forget the least recently used idle block and give it away."""
        block, _ = self.idle.popitem(last=False)
        del self._blocks[self._hashes.pop(block)]
        return block

    def drop_idle(self) -> list[int]:
        """Forget all idle blocks and give them away."""
        dropped = list(self.idle)
        for block in dropped:
            del self._blocks[self._hashes.pop(block)]
        self.idle.clear()
        return dropped
