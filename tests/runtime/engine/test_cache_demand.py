from hypothesis import given
from hypothesis import strategies as st

from octavo_runtime.engine.cache_demand import longest_output, worst_case_blocks


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 40), st.integers(1, 8))
def test_the_longest_output_fits_and_one_token_more_does_not(
    num_prompt: int, num_sequences: int, num_blocks: int, block_size: int
) -> None:
    longest = longest_output(num_prompt, num_sequences, num_blocks, block_size)
    fits = [
        max_tokens
        for max_tokens in range(1, num_blocks * block_size + 2)
        if worst_case_blocks(num_prompt, num_sequences, max_tokens, block_size) <= num_blocks
    ]
    assert longest == max(fits, default=1)


def test_prompt_blocks_are_counted_once_and_partial_ones_for_every_sequence() -> None:
    assert worst_case_blocks(num_prompt=10, num_sequences=3, max_tokens=3, block_size=4) == 2 + 3
    assert worst_case_blocks(num_prompt=10, num_sequences=3, max_tokens=1, block_size=4) == 3
