from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from octavo_runtime import engine_process
from octavo_runtime.engine.messages import AddRequest, FinishReason
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.engine_process import build_llm_engine, engine_ready
from octavo_runtime.hub import ModelKind, ModelSource
from octavo_runtime.settings import Settings
from octavo_runtime.worker.config import WorkerReady


def worker_ready() -> WorkerReady:
    return WorkerReady(
        model=cast(Any, SimpleNamespace(vocab_size=8)),
        backend="fake",
        dtype="float32",
        num_blocks=16,
        num_host_blocks=0,
        block_size=16,
        max_model_len=64,
        weight_bytes=1,
        cache_bytes=1,
        timings={},
    )


class FakeWorker:
    def __init__(self, settings: object) -> None:
        self.settings = settings

    def start(self, _progress: object) -> WorkerReady:
        return worker_ready()


@pytest.mark.parametrize(
    "values",
    [{}, {"max_num_batched_tokens": 64}, {"max_num_seqs": 256}, {"max_num_seqs": 7, "max_num_batched_tokens": 7}],
)
def test_what_is_reported_is_what_the_engine_works_with(values: dict[str, int]) -> None:
    settings = Settings.from_values({"model": "m", **values})
    told, config = engine_ready(settings, worker_ready()), settings.scheduler_config(64)
    assert (told.max_num_seqs, told.max_model_len) == (config.max_num_seqs, config.max_model_len)
    assert told.max_num_seqs <= config.max_num_batched_tokens


def test_the_engine_knows_the_models_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "Worker", FakeWorker)
    source = ModelSource("m", Path("m"), ModelKind.SAFETENSORS, {}, {})
    engine = build_llm_engine(Settings.from_values({"model": "m"}), source, print).engine
    engine.add_request(AddRequest(request_id="a", prompt_token_ids=[8], params=SamplingParams()))
    (end,) = engine.step().finished
    assert end.reason is FinishReason.ERROR
