"""The native sampling against the sorting reference, on every instruction set of the machine."""

import random

import pytest
import torch

from octavo_kernels.backend import SamplingBatch
from octavo_kernels.cpu.backend import CpuBackend
from octavo_kernels.cpu.native import MAX_VOCAB, Isa, available_isas
from octavo_kernels.sampling import filtered_probabilities, sample_reference

pytestmark = pytest.mark.skipif(not available_isas(), reason="the native CPU kernels are not built")

VECTOR_ISAS = [isa for isa in available_isas() if isa <= Isa.AVX512]  # the better ones change matrix products only


@pytest.fixture(params=VECTOR_ISAS, ids=lambda isa: isa.name)
def backend(request: pytest.FixtureRequest) -> CpuBackend:
    return CpuBackend(2, torch.float32, request.param)


def draws_of(
    rows: list[int],
    uniform: torch.Tensor,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
) -> SamplingBatch:
    count = len(rows)
    return SamplingBatch(
        torch.tensor(rows, dtype=torch.int32),
        torch.full((count,), temperature),
        torch.full((count,), top_k, dtype=torch.int32),
        torch.full((count,), top_p),
        torch.full((count,), min_p),
        uniform,
    )


def random_draws(choose: random.Random, num_rows: int, vocab: int, count: int) -> SamplingBatch:
    def floats(options: list[float]) -> torch.Tensor:
        return torch.tensor([choose.choice(options) for _ in range(count)])

    return SamplingBatch(
        torch.randint(0, num_rows, (count,)).int(),
        floats([0.0, 0.3, 1.0, 2.0]),
        floats([0, 0, 1, 2, 5, 50, 200, vocab, vocab + 5]).int(),
        floats([1.0, 0.01, 0.5, 0.9, 0.99]),
        floats([0.0, 0.0, 0.05, 0.5, 1.0]),
        torch.rand(count),
    )


def with_ties(logits: torch.Tensor) -> torch.Tensor:
    return (logits * 4).round() / 4


def with_banned_tokens(logits: torch.Tensor) -> torch.Tensor:
    return logits.masked_fill(torch.rand(logits.shape) < 0.5, float("-inf"))


def with_nans(logits: torch.Tensor) -> torch.Tensor:
    broken = logits.masked_fill(torch.rand(logits.shape) < 0.3, float("nan"))
    broken[0] = float("nan")
    return broken


@pytest.mark.parametrize("vocab", [1, 5, 255, 256, 257, 5000, 49152])
@pytest.mark.parametrize("change", [torch.clone, torch.round, with_ties, with_banned_tokens, with_nans])
def test_draws_what_the_reference_draws(backend: CpuBackend, vocab: int, change: object) -> None:
    torch.manual_seed(vocab)
    assert callable(change)
    for spread in (0.1, 3.0):
        logits = change(torch.randn(4, vocab) * spread)
        draws = random_draws(random.Random(vocab), 4, vocab, 10)
        assert backend.sample(logits, draws).tolist() == sample_reference(logits, draws).tolist()


def test_the_largest_vocabulary_is_drawn_from_and_a_larger_one_refused(backend: CpuBackend) -> None:
    logits = torch.randn(1, MAX_VOCAB + 1, generator=torch.Generator().manual_seed(0))
    draws = draws_of([0] * 3, torch.tensor([0.1, 0.5, 0.9]), top_k=MAX_VOCAB // 2, top_p=0.9)
    largest = logits[:, :-1].contiguous()
    assert backend.sample(largest, draws).tolist() == sample_reference(largest, draws).tolist()
    with pytest.raises(ValueError, match=f"at most {MAX_VOCAB} tokens, not {MAX_VOCAB + 1}"):
        backend.sample(logits, draws)


def test_greedy_takes_the_lowest_id_of_equals(backend: CpuBackend) -> None:
    logits = torch.zeros(1, 1000)
    logits[0, [300, 700]] = 2.0
    assert backend.sample(logits, draws_of([0], torch.zeros(1), temperature=0.0)).tolist() == [300]


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_without_a_usable_logit_gives_token_0(backend: CpuBackend, value: float, temperature: float) -> None:
    logits = torch.full((1, 700), value)
    assert backend.sample(logits, draws_of([0], torch.full((1,), 0.9), temperature, top_p=0.5)).tolist() == [0]


def test_infinite_logits_share_the_probability(backend: CpuBackend) -> None:
    logits = torch.zeros(1, 700)
    logits[0, [9, 600]] = float("inf")
    drawn = backend.sample(logits, draws_of([0] * 4, torch.tensor([0.0, 0.49, 0.51, 0.99])))
    assert drawn.tolist() == [9, 9, 600, 600]


@pytest.mark.parametrize("top_k", [3, 300])
def test_ties_at_the_edge_of_top_k_all_stay(backend: CpuBackend, top_k: int) -> None:
    logits = torch.full((1, 2000), -5.0)
    logits[0, :1000] = 1.0
    drawn = backend.sample(logits, draws_of([0] * 2000, torch.arange(2000) / 2000, top_k=top_k))
    assert set(drawn.tolist()) == set(range(1000))


@pytest.mark.parametrize("top_p", [1e-6, 0.5, 0.999999])
def test_equal_logits_all_stay_under_top_p(backend: CpuBackend, top_p: float) -> None:
    drawn = backend.sample(torch.zeros(1, 5000), draws_of([0, 0], torch.tensor([0.0, 0.9999]), top_p=top_p))
    assert drawn.tolist() == [0, 4999]


@pytest.mark.parametrize("temperature", [1e-30, 1e-6, 1e30])
def test_extreme_temperatures_give_a_token(backend: CpuBackend, temperature: float) -> None:
    logits = torch.randn(1, 3000)
    (token,) = backend.sample(logits, draws_of([0], torch.full((1,), 0.5), temperature, top_p=0.9)).tolist()
    assert 0 <= token < 3000
    if temperature < 1:
        assert token == int(logits.argmax())


def test_tokens_come_up_as_often_as_their_probability_says(backend: CpuBackend) -> None:
    torch.manual_seed(0)
    count = 20_000
    logits = torch.randn(1, 400) * 2
    drawn = backend.sample(logits, draws_of([0] * count, torch.rand(count), 0.9, top_k=60, top_p=0.95, min_p=0.01))
    expected = filtered_probabilities(logits[0], 0.9, 60, 0.95, 0.01) * count
    counts = torch.bincount(drawn.long(), minlength=400)
    assert bool((counts[expected == 0] == 0).all())
    kept = expected > 0
    chi_square = float(((counts[kept] - expected[kept]) ** 2 / expected[kept]).sum())
    freedom = int(kept.sum()) - 1
    assert chi_square < freedom + 5 * (2 * freedom) ** 0.5
