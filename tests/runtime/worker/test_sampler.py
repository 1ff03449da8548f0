import math
from typing import Any

import pytest
import torch

from octavo_kernels.backend import Backend, BackendName, select_backend
from octavo_runtime.engine.plan import Row, RowResult, RowSampling
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.worker.inputs import LogitsLayout
from octavo_runtime.worker.sampler import Sampler

GREEDY = SamplingParams(temperature=0)


@pytest.fixture(params=[BackendName.REFERENCE, BackendName.TORCH_CPU, BackendName.CPU])
def sampler(request: pytest.FixtureRequest) -> Sampler:
    return Sampler(make_backend(request.param))


def make_backend(name: BackendName) -> Backend:
    try:
        return select_backend(name, torch.device("cpu"), num_threads=1, dtype=torch.float32)
    except RuntimeError as error:
        pytest.skip(str(error))


def wants(params: SamplingParams = GREEDY, uniforms: tuple[float, ...] = (0.5,), **fields: Any) -> RowSampling:
    return RowSampling(params, uniforms, prompt_token_ids=[0, 1], output_token_ids=[], **fields)


def run(sampler: Sampler, logits: list[list[float]], *samplings: RowSampling | None) -> tuple[RowResult, ...]:
    """Row i of the plan is sampled from row i of the logits."""
    rows = [Row(i, [0], 0, [i], sampling) for i, sampling in enumerate(samplings)]
    sampled = tuple(-1 if sampling is None else i for i, sampling in enumerate(samplings))
    return sampler.sample(torch.tensor(logits), rows, LogitsLayout(sampled, (0,) * len(rows)))


def test_greedy_takes_the_likeliest_and_the_lowest_id_of_equals(sampler: Sampler) -> None:
    results = run(sampler, [[0.0, 2.0, 1.0], [3.0, 5.0, 5.0]], wants(), wants())
    assert [result.token_ids for result in results] == [(1,), (1,)]


def test_rows_that_sample_nothing_give_nothing(sampler: Sampler) -> None:
    results = run(sampler, [[0.0, 1.0], [1.0, 0.0]], None, wants())
    assert results[0] == RowResult()
    assert results[1].token_ids == (0,)


def test_every_uniform_draws_one_token_by_inverse_cdf_in_id_order(sampler: Sampler) -> None:
    logits = [[math.log(0.2), math.log(0.5), math.log(0.3)]]
    (result,) = run(sampler, logits, wants(SamplingParams(), (0.0, 0.19, 0.21, 0.69, 0.71, 0.99)))
    assert result.token_ids == (0, 0, 1, 1, 2, 2)


def test_logprobs_are_of_the_raw_distribution_with_rank_and_top(sampler: Sampler) -> None:
    params = SamplingParams(temperature=0, logit_bias={2: 100.0})
    (result,) = run(sampler, [[1.0, 3.0, 2.0]], wants(params, num_logprobs=2))
    assert result.token_ids == (2,)
    assert result.logprobs is not None
    entry = result.logprobs[0]
    expected = torch.tensor([1.0, 3.0, 2.0]).log_softmax(-1)
    assert (entry.token_id, entry.rank) == (2, 2)
    assert entry.logprob == pytest.approx(float(expected[2]), abs=1e-5)
    assert [token for token, _ in entry.top] == [1, 2]
    assert entry.top[0][1] == pytest.approx(float(expected[1]), abs=1e-5)


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (2, 2), (-1, 3), (50, 3)])
def test_the_number_of_top_logprobs_is_as_asked_for(sampler: Sampler, count: int, expected: int) -> None:
    (result,) = run(sampler, [[1.0, 3.0, 2.0]], wants(num_logprobs=count))
    assert result.logprobs is not None
    assert len(result.logprobs[0].top) == expected


def test_prompt_logprobs_come_one_per_target_and_before_processing(sampler: Sampler) -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0], [0.0, 3.0, 0.0]])
    sampling = wants(SamplingParams(temperature=0, logit_bias={0: 100.0}))
    row = Row(0, [5, 6, 7], 0, [0], sampling, prompt_targets=[1, 0], num_prompt_logprobs=1)
    expected = logits.log_softmax(-1)
    (result,) = sampler.sample(logits, [row], LogitsLayout((2,), (0,)))
    assert result.token_ids == (0,)
    assert result.prompt_logprobs is not None
    assert [entry.token_id for entry in result.prompt_logprobs] == [1, 0]
    assert [entry.rank for entry in result.prompt_logprobs] == [2, 1]
    assert result.prompt_logprobs[0].logprob == pytest.approx(float(expected[0, 1]), abs=1e-5)


def test_beams_get_the_likeliest_candidates_without_the_banned(sampler: Sampler) -> None:
    (result,) = run(sampler, [[1.0, 3.0, 2.0, 0.0]], wants(uniforms=(), num_beam_candidates=2, banned_token_ids=(1,)))
    expected = torch.tensor([1.0, 3.0, 2.0, 0.0]).log_softmax(-1)
    assert result.token_ids == ()
    assert [token for token, _ in result.candidates] == [2, 0]
    assert result.candidates[0][1] == pytest.approx(float(expected[2]), abs=1e-5)


def test_a_row_does_not_depend_on_its_neighbours(sampler: Sampler) -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(6, 400, generator=generator).mul_(3).tolist()
    params = SamplingParams(temperature=0.8, top_k=40, top_p=0.9, min_p=0.01)
    samplings = [wants(params, (i / 7,)) for i in range(6)]
    together = run(sampler, logits, *samplings)
    alone = [run(sampler, [logits[i]], samplings[i])[0] for i in range(6)]
    assert list(together) == alone
