"""Engines on the real embedded model for the tests of this folder: one worker per block size, many engines over it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from octavo_kernels.backend_name import BackendName
from octavo_runtime.engine.config import CacheConfig, SchedulerConfig
from octavo_runtime.engine.llm_engine import LLMEngine
from octavo_runtime.engine.messages import AddRequest, FinishReason, SchedulerStats, TokenLogprobs
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.hub import embedded_model_path
from octavo_runtime.model.dtype import ModelDtype
from octavo_runtime.worker.config import WorkerReady, WorkerSettings
from octavo_runtime.worker.worker import Worker

CACHE_BYTES = 512 << 20
SWAP_BYTES = 256 << 20


@dataclass
class Answer:
    """All that came for one request."""

    tokens: dict[int, list[int]] = field(default_factory=dict)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    reason: FinishReason | None = None
    num_finished: int = 0


@dataclass(frozen=True)
class Run:
    """Answers in the order of the requests, and the state after the last step."""

    answers: list[Answer]
    stats: SchedulerStats


def start_worker(block_size: int, backend: BackendName = BackendName.AUTO) -> tuple[Worker, WorkerReady]:
    worker = Worker(
        WorkerSettings(
            model_path=embedded_model_path(),
            backend=backend,
            dtype=ModelDtype.FLOAT32,
            block_size=block_size,
            kv_cache_memory_bytes=CACHE_BYTES,
            swap_bytes=SWAP_BYTES,
        )
    )
    return worker, worker.start(lambda _: None)


def make_engine(worker: Worker, scheduler: SchedulerConfig, cache: CacheConfig) -> LLMEngine:
    return LLMEngine(scheduler, cache, worker, time.monotonic)


def run(engine: LLMEngine, requests: Sequence[tuple[list[int], SamplingParams]], priorities: Sequence[int] = ()) -> Run:
    """Everything at once."""
    stats = SchedulerStats()
    answers = [Answer() for _ in requests]
    for index, (prompt, params) in enumerate(requests):
        priority = priorities[index] if priorities else 0
        engine.add_request(AddRequest(request_id=str(index), prompt_token_ids=prompt, params=params, priority=priority))
    while engine.has_unfinished_requests():
        outputs = engine.step()
        stats = outputs.stats
        for output in outputs.sequences:
            answer = answers[int(output.request_id)]
            answer.tokens.setdefault(output.index, []).extend(output.token_ids)
            answer.logprobs.extend(output.logprobs or [])
        for finished in outputs.finished:
            answers[int(finished.request_id)].reason = finished.reason
            answers[int(finished.request_id)].num_finished += 1
    return Run(answers, stats)
