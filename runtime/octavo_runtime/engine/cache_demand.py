"""Blocks of KV cache that a request may come to need, and the longest output that a cache has room for.

Pure arithmetic in tokens and blocks: the engine refuses by it, the engine and the server cut defaults by it.
"""


def worst_case_blocks(num_prompt: int, num_sequences: int, max_tokens: int, block_size: int) -> int:
    """Blocks held if all sequences run to the limit: full prompt blocks are shared, last tokens never computed."""
    num_longest = -(-(num_prompt + max_tokens - 1) // block_size)
    if max_tokens == 1:  # one token each: drawn from one row, no fork
        return num_longest
    shared = num_prompt // block_size
    return shared + num_sequences * (num_longest - shared)


def longest_output(num_prompt: int, num_sequences: int, num_blocks: int, block_size: int) -> int:
    """The largest max_tokens that needs at most `num_blocks` in the worst case; 1 when none does."""
    shared = num_prompt // block_size
    own = (num_blocks - shared) // num_sequences
    return max(1, (shared + own) * block_size - num_prompt + 1)
