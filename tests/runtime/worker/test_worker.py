"""A worker on a tiny checkpoint, driven by hand-written plans."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from octavo_kernels.backend_name import BackendName
from octavo_kernels.cpu.native import available_isas
from octavo_runtime.engine.messages import LoadProgress
from octavo_runtime.engine.plan import Row, RowSampling, StepPlan
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.config import Architecture
from octavo_runtime.model.dtype import ModelDtype
from octavo_runtime.testing import build_tiny_model
from octavo_runtime.worker.config import WorkerSettings
from octavo_runtime.worker.worker import Worker

GREEDY = SamplingParams(temperature=0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, torch.nn.Module]:
    reference = build_tiny_model(Architecture.LLAMA)
    folder = tmp_path_factory.mktemp("tiny")
    reference.save_pretrained(folder)
    return folder, reference


@pytest.fixture
def settings(model: tuple[Path, torch.nn.Module]) -> WorkerSettings:
    return WorkerSettings(
        model[0], ModelDtype.FLOAT32, BackendName.REFERENCE, block_size=8, num_blocks=40, swap_bytes=1 << 20
    )


def ignore(progress: LoadProgress) -> None:
    """Nobody watches."""


def greedy_row(sequence: int, tokens: list[int], start: int, table: list[int]) -> Row:
    return Row(sequence, tokens, start, table, RowSampling(GREEDY, (0.0,), tokens, []))


def expected_tokens(reference: torch.nn.Module, prompt: list[int], count: int) -> list[int]:
    tokens = list(prompt)
    with torch.inference_mode():
        for _ in range(count):
            tokens.append(int(reference(torch.tensor([tokens])).logits[0, -1].argmax()))
    return tokens[len(prompt) :]


def test_start_reports_progress_sizes_and_timings(settings: WorkerSettings) -> None:
    seen: list[LoadProgress] = []
    ready = Worker(settings).start(seen.append)
    assert list(dict.fromkeys(progress.phase for progress in seen)) == ["weights", "cache", "warm-up"]
    weights = [progress for progress in seen if progress.phase == "weights"]
    assert weights[-1].done_bytes == weights[-1].total_bytes > 0
    assert (ready.num_blocks, ready.block_size, ready.max_model_len) == (40, 8, 256)
    assert ready.num_host_blocks == (1 << 20) // (ready.cache_bytes // 40)
    assert set(ready.timings) == {"open", "weights", "cache", "warm-up"}
    assert ready.tokens_per_second is not None
    assert min(ready.tokens_per_second, ready.activation_bytes) > 0
    assert (ready.backend, ready.dtype) == ("reference", "float32")


def test_greedy_tokens_survive_swap_and_copy(settings: WorkerSettings, model: tuple[Path, torch.nn.Module]) -> None:
    worker = Worker(settings)
    worker.start(ignore)
    prompt = list(range(20, 31))
    expected = expected_tokens(model[1], prompt, 4)
    first = worker.execute(StepPlan((greedy_row(1, prompt, 0, [3, 9]),))).rows[0].token_ids[0]
    second = worker.execute(StepPlan((greedy_row(1, [first], 11, [3, 12]),), copy=((9, 12),))).rows[0].token_ids[0]
    worker.execute(StepPlan((), swap_out=((3, 0), (12, 1))))
    worker.execute(StepPlan((greedy_row(2, list(range(16)), 0, [3, 12]),)))
    third = (
        worker.execute(StepPlan((greedy_row(1, [second], 12, [30, 31]),), swap_in=((0, 30), (1, 31))))
        .rows[0]
        .token_ids[0]
    )
    fourth = worker.execute(StepPlan((greedy_row(1, [third], 13, [30, 31]),))).rows[0].token_ids[0]
    assert [first, second, third, fourth] == expected


def test_a_chunk_that_samples_nothing_gives_an_empty_result(settings: WorkerSettings) -> None:
    worker = Worker(settings)
    worker.start(ignore)
    result = worker.execute(StepPlan((Row(1, [5, 6, 7], 0, [2]),)))
    assert [row.token_ids for row in result.rows] == [()]


def test_prompt_logprobs_equal_the_full_forward(settings: WorkerSettings, model: tuple[Path, torch.nn.Module]) -> None:
    worker = Worker(settings)
    worker.start(ignore)
    prompt = list(range(40, 60))
    row = Row(1, prompt, 0, [1, 2, 3], RowSampling(GREEDY, (0.0,), prompt, []), prompt[1:], num_prompt_logprobs=3)
    (result,) = worker.execute(StepPlan((row,))).rows
    with torch.inference_mode():
        expected = model[1](torch.tensor([prompt])).logits[0].log_softmax(-1)
    assert result.prompt_logprobs is not None
    for position, entry in enumerate(result.prompt_logprobs):
        assert entry.logprob == pytest.approx(float(expected[position, prompt[position + 1]]), abs=1e-4)
        assert [token for token, _ in entry.top] == expected[position].topk(3).indices.tolist()


def test_an_unknown_device_is_an_invalid_setting(settings: WorkerSettings) -> None:
    with pytest.raises(StartError, match="use the device cpu") as caught:
        Worker(replace(settings, device="cuda")).start(ignore)
    assert caught.value.cause is StartCause.INVALID_SETTINGS


def test_the_plan_counts_weights_as_the_backend_keeps_them(
    settings: WorkerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    wide = Worker(settings).start(ignore)
    widened = Worker(replace(settings, dtype=ModelDtype.BFLOAT16, backend=BackendName.TORCH_CPU)).start(ignore)
    assert widened.weight_bytes == wide.weight_bytes
    assert widened.cache_bytes == wide.cache_bytes // 2


@pytest.mark.skipif(not available_isas(), reason="the native CPU kernels are not built")
def test_what_the_backend_cannot_run_says_which_backend_can(settings: WorkerSettings) -> None:
    with pytest.raises(StartError, match="multiple of 8 tokens, not 12; use --backend torch_cpu") as caught:
        Worker(replace(settings, backend=BackendName.CPU, block_size=12)).start(ignore)
    assert caught.value.cause is StartCause.MODEL_UNSUPPORTED


def test_a_plan_before_the_start_is_a_programming_error(settings: WorkerSettings) -> None:
    with pytest.raises(RuntimeError, match="not started"):
        Worker(settings).execute(StepPlan(()))


def test_weights_that_are_not_numbers_are_refused_at_the_start(settings: WorkerSettings, tmp_path: Path) -> None:
    broken = build_tiny_model(Architecture.LLAMA)
    with torch.no_grad():
        next(iter(broken.parameters())).fill_(float("nan"))
    broken.save_pretrained(tmp_path)
    with pytest.raises(StartError, match="not numbers") as caught:
        Worker(replace(settings, model_path=tmp_path)).start(ignore)
    assert caught.value.cause is StartCause.MODEL_CORRUPT
