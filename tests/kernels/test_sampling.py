"""Sampling of every backend: the same tokens as the reference, and the right distribution."""

import math
from collections.abc import Callable

import pytest
import torch

from octavo_kernels.backend import BackendName, SamplingBatch, select_backend
from octavo_kernels.sampling import filtered_probabilities, sample_reference

Sample = Callable[[torch.Tensor, SamplingBatch], torch.Tensor]
INF = float("inf")


@pytest.fixture(params=[BackendName.REFERENCE, BackendName.TORCH_CPU, BackendName.CPU])
def sample(request: pytest.FixtureRequest) -> Sample:
    try:
        return select_backend(request.param, torch.device("cpu"), num_threads=1, dtype=torch.float32).sample
    except RuntimeError as error:
        pytest.skip(str(error))


def draws(rows: list[int], uniforms: list[float], **filters: float) -> SamplingBatch:
    count = len(rows)
    return SamplingBatch(
        rows=torch.tensor(rows, dtype=torch.int32),
        temperature=torch.full((count,), filters.get("temperature", 1.0)),
        top_k=torch.full((count,), int(filters.get("top_k", 0)), dtype=torch.int32),
        top_p=torch.full((count,), filters.get("top_p", 1.0)),
        min_p=torch.full((count,), filters.get("min_p", 0.0)),
        uniform=torch.tensor(uniforms, dtype=torch.float32),
    )


FILTERS = [
    {"top_k": 1},
    {"top_k": 7, "temperature": 0.6},
    {"top_k": 500},
    {"top_p": 0.9},
    {"top_p": 0.05},
    {"top_p": 0.999, "temperature": 2.0},
    {"min_p": 0.1},
    {"min_p": 1e-4, "temperature": 1.7},
    {"top_k": 40, "top_p": 0.8, "min_p": 0.02, "temperature": 0.9},
    {"temperature": 0.01},
    {},
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("vocab", [3, 300, 5000])
def test_every_backend_draws_the_tokens_of_the_reference(sample: Sample, filters: dict[str, float], vocab: int) -> None:
    generator = torch.Generator().manual_seed(vocab)
    logits = torch.randn(6, vocab, generator=generator) * torch.tensor([0.3, 1.0, 2.0, 3.0, 5.0, 8.0])[:, None]
    rows = [row for row in range(6) for _ in range(8)]
    uniforms = torch.rand(48, generator=generator).tolist()
    batch = draws(rows, uniforms, **filters)
    expected, actual = sample_reference(logits, batch), sample(logits, batch)
    assert actual.dtype is torch.int32
    differing = (expected != actual).nonzero().flatten().tolist()
    assert len(differing) <= 1  # a uniform may lie on a border, within rounding
    for i in differing:
        assert_on_border(logits[rows[i]], uniforms[i], (int(expected[i]), int(actual[i])), filters)


def assert_on_border(logits: torch.Tensor, uniform: float, tokens: tuple[int, int], filters: dict[str, float]) -> None:
    probabilities = filtered_probabilities(
        logits,
        filters.get("temperature", 1.0),
        int(filters.get("top_k", 0)),
        filters.get("top_p", 1.0),
        filters.get("min_p", 0.0),
    )
    cumulative = probabilities.cumsum(-1)
    assert float((cumulative[min(tokens)] - uniform).abs()) < 1e-5


def test_temperature_zero_takes_the_lowest_of_the_largest(sample: Sample) -> None:
    logits = torch.tensor([[0.0, 4.0, 4.0], [-1.0, -INF, -2.0], [math.nan, 1.0, 0.0]])
    assert sample(logits, draws([0, 1, 2], [0.9] * 3, temperature=0.0)).tolist() == [1, 0, 1]


def test_a_row_without_any_token_gives_token_zero(sample: Sample) -> None:
    logits = torch.tensor([[-INF, -INF, -INF], [math.nan, math.nan, math.nan]])
    for filters in ({"temperature": 0.0}, {"top_k": 2}, {"top_p": 0.5}, {}):
        assert sample(logits, draws([0, 1], [0.99, 0.99], **filters)).tolist() == [0, 0]


def test_the_likeliest_token_always_stays(sample: Sample) -> None:
    logits = torch.tensor([[1.0, 5.0, 2.0]])
    for filters in ({"top_p": 1e-9}, {"min_p": 1.0}, {"top_k": 1}):
        assert sample(logits, draws([0, 0], [0.0, 0.9999999], **filters)).tolist() == [1, 1]


def test_banned_tokens_are_never_drawn(sample: Sample) -> None:
    logits = torch.tensor([[-INF, 0.0, -INF, 0.0, -INF]])
    tokens = sample(logits, draws([0] * 4, [0.0, 0.4999, 0.5001, 0.9999999])).tolist()
    assert tokens == [1, 1, 3, 3]


def test_ties_at_the_edge_of_top_k_all_stay(sample: Sample) -> None:
    logits = torch.tensor([[1.0, 2.0, 1.0, 1.0, 0.0]])
    tokens = sample(logits, draws([0] * 200, [i / 200 for i in range(200)], top_k=2)).unique().tolist()
    assert tokens == [0, 1, 2, 3]


def test_frequencies_follow_the_filtered_distribution(sample: Sample) -> None:
    logits = torch.tensor([[2.0, 1.0, 0.5, 0.0, -1.0, -2.0]])
    count = 4000
    batch = draws([0] * count, [(i + 0.5) / count for i in range(count)], temperature=0.8, top_p=0.9)
    frequencies = torch.bincount(sample(logits, batch), minlength=6) / count
    expected = filtered_probabilities(logits[0], 0.8, 0, 0.9, 0.0)
    torch.testing.assert_close(frequencies.double(), expected, atol=1e-3, rtol=0)
