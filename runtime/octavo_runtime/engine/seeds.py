"""Random numbers that depend on nothing but (seed, sequence index, output position).

The batch a token is drawn in, preemption and the order of requests have no influence. Eight draws come from one keyed
hash, so a sequence keeps the block it is in (`Sequence.uniforms`) and hashes every eighth token only.
"""

import secrets
import struct
from hashlib import blake2b

from octavo_runtime.engine.sequence import Sequence

_DRAWS = 8
_PACK = struct.Struct("<QQQ").pack
_UNPACK = struct.Struct("<8Q").unpack
_MASK = 2**64 - 1


def request_seed(seed: int | None, engine_seed: int | None = None, arrival: int = 0) -> int:
    """The user's seed as an unsigned 64-bit number.

    Without one: made of the engine's seed and the request's number in order of arrival, or random when the engine has
    none either.
    """
    if seed is not None:
        return seed & _MASK
    if engine_seed is None:
        return secrets.randbits(64)
    digest = blake2b(_PACK(engine_seed & _MASK, arrival, 0), digest_size=8, person=b"octavo-seeds").digest()
    return int.from_bytes(digest, "little")


def uniform_block(seed: int, index: int, block: int) -> tuple[float, ...]:
    """Eight uniforms in [0, 1) with 53 random bits each, for output positions 8 * block ... 8 * block + 7."""
    digest = blake2b(_PACK(seed, index, block), digest_size=64, person=b"octavo-draws").digest()
    return tuple((word >> 11) * 2.0**-53 for word in _UNPACK(digest))


def uniform(seed: int, index: int, position: int) -> float:
    """The draw for output `position` (0 = first generated token) of sequence `index`."""
    return uniform_block(seed, index, position // _DRAWS)[position % _DRAWS]


def next_uniform(seed: int, sequence: Sequence) -> float:
    """The draw for the sequence's next token."""
    position = len(sequence.output_token_ids)
    block = position // _DRAWS
    if block != sequence.uniforms_block:
        sequence.uniforms = uniform_block(seed, sequence.index, block)
        sequence.uniforms_block = block
    return sequence.uniforms[position % _DRAWS]
