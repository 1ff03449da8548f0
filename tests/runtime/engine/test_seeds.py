from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from octavo_runtime.engine.seeds import next_uniform, request_seed, uniform
from octavo_runtime.engine.sequence import Sequence


@given(st.integers(0, 2**64 - 1), st.integers(0, 100), st.integers(0, 10_000))
def test_draws_are_in_the_unit_interval_and_repeat(seed: int, index: int, position: int) -> None:
    assert 0.0 <= uniform(seed, index, position) < 1.0
    assert uniform(seed, index, position) == uniform(seed, index, position)


def test_draws_differ_by_seed_index_and_position() -> None:
    draws = {uniform(*key) for key in product(range(8), range(8), range(20))}
    assert len(draws) == 8 * 8 * 20


def test_draws_are_spread_evenly() -> None:
    draws = [uniform(5, 0, position) for position in range(4000)]
    assert abs(sum(draws) / len(draws) - 0.5) < 0.02
    assert all(300 < sum(low <= draw * 10 < low + 1 for draw in draws) < 500 for low in range(10))


def test_a_sequence_draws_by_its_output_position() -> None:
    sequence = Sequence(sequence_id=1, index=3, token_ids=[1])
    drawn = []
    for _ in range(20):
        drawn.append(next_uniform(9, sequence))
        sequence.append(0)
    assert drawn == [uniform(9, 3, position) for position in range(20)]


def test_a_negative_seed_is_a_seed_and_no_seed_is_a_random_one() -> None:
    assert request_seed(-1) == 2**64 - 1
    assert request_seed(7) == 7
    assert request_seed(None) != request_seed(None)


def test_requests_without_a_seed_repeat_with_the_engines_seed_and_differ_from_each_other() -> None:
    assert request_seed(None, 3, 1) == request_seed(None, 3, 1)
    assert len({request_seed(None, seed, arrival) for seed in (0, 3, -1) for arrival in range(10)}) == 30
    assert request_seed(7, 3, 1) == 7
