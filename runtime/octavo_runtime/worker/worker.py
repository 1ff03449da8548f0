"""`Worker`: one process's share of the model. Starts it (weights, cache, warm-up) and executes plans.

Given `WorkerSettings`; reports progress through a callback. At world size 1 it is the engine's Executor.
"""

import math
import time
from collections.abc import Callable

import torch

from octavo_kernels.backend import Backend, select_backend
from octavo_kernels.ops import CacheShape
from octavo_runtime.engine.messages import LoadProgress
from octavo_runtime.engine.plan import Row, StepPlan, StepResult
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.config import ModelConfig
from octavo_runtime.model.dtype import ModelDtype
from octavo_runtime.model.memory_plan import plan_memory
from octavo_runtime.model.registry import Checkpoint, Model, load_model, open_checkpoint
from octavo_runtime.worker.cache_engine import CacheEngine
from octavo_runtime.worker.cache_size import CacheSize, size_cache, step_bytes
from octavo_runtime.worker.config import WorkerReady, WorkerSettings
from octavo_runtime.worker.cores import usable_cores
from octavo_runtime.worker.decode_rate import GREEDY, decode_rate
from octavo_runtime.worker.memory import available_memory
from octavo_runtime.worker.model_runner import ModelRunner

ProgressCallback = Callable[[LoadProgress], None]

TORCH_DTYPES = {
    ModelDtype.BFLOAT16: torch.bfloat16,
    ModelDtype.FLOAT16: torch.float16,
    ModelDtype.FLOAT32: torch.float32,
}


class Worker:
    """Rank `rank` of all workers, `local_rank` of those on this machine."""

    def __init__(self, settings: WorkerSettings, rank: int = 0, local_rank: int = 0) -> None:
        self.rank = rank
        self.local_rank = local_rank
        self._settings = settings
        self._cache: CacheEngine | None = None
        self._runner: ModelRunner | None = None

    def start(self, progress: ProgressCallback) -> WorkerReady:
        """Loads, allocates and runs one real step. Raises StartError with what to do."""
        settings, clock = self._settings, _Clock()
        torch.set_num_threads(1)  # for many small conversions; a backend that computes with torch sets its own number
        checkpoint = open_checkpoint(settings.model_path)
        config = checkpoint.config
        dtype = settings.dtype.stored(settings.device)
        backend = self._select_backend(TORCH_DTYPES[dtype])
        stored = backend.stored_dtype(TORCH_DTYPES[dtype])
        plan = plan_memory(config, dtype, settings.block_size, stored.itemsize)
        size = size_cache(settings, config, plan, available_memory())
        clock.lap("open")
        model = self._load(checkpoint, backend, TORCH_DTYPES[dtype], size, progress)
        clock.lap("weights")
        progress(LoadProgress(phase="cache"))
        shape = _cache_shape(config, size, settings.block_size, TORCH_DTYPES[dtype])
        try:
            self._cache = CacheEngine(backend, shape, size.num_host_blocks)
            self._runner = ModelRunner(backend, model, self._cache.cache, config.vocab_size)
        except ValueError as error:
            raise StartError(StartCause.MODEL_UNSUPPORTED, f"{error}; use --backend torch_cpu.") from error
        clock.lap("cache")
        progress(LoadProgress(phase="warm-up"))
        self._warm_up(checkpoint, size)
        rate = decode_rate(self.execute, min(settings.max_num_seqs, size.num_blocks))
        clock.lap("warm-up")
        return WorkerReady(
            model=config,
            backend=backend.name,
            dtype=dtype.value,
            num_blocks=size.num_blocks,
            num_host_blocks=size.num_host_blocks,
            block_size=settings.block_size,
            max_model_len=size.max_model_len,
            weight_bytes=plan.weight_bytes,
            cache_bytes=size.num_blocks * shape.block_bytes,
            timings=clock.laps,
            activation_bytes=step_bytes(settings, config),
            tokens_per_second=rate,
            device=settings.device,
        )

    def execute(self, plan: StepPlan) -> StepResult:
        """Block moves, then the model, then sampling."""
        if self._cache is None or self._runner is None:
            raise RuntimeError("the worker was not started")
        self._cache.move(plan)
        return self._runner.run(plan)

    def _select_backend(self, dtype: torch.dtype) -> Backend:
        threads = self._settings.num_threads or usable_cores()
        try:
            return select_backend(self._settings.backend, torch.device(self._settings.device), threads, dtype)
        except RuntimeError as error:
            raise StartError(StartCause.INVALID_SETTINGS, f"{error}.") from error

    def _load(
        self, checkpoint: Checkpoint, backend: Backend, dtype: torch.dtype, size: CacheSize, progress: ProgressCallback
    ) -> Model:
        def report(done_bytes: int, total_bytes: int) -> None:
            progress(LoadProgress(phase="weights", done_bytes=done_bytes, total_bytes=total_bytes))

        return load_model(checkpoint, backend, dtype, size.max_model_len, report)

    def _warm_up(self, checkpoint: Checkpoint, size: CacheSize) -> None:
        """A prompt of two tokens and then one of its decodes, in block 0, which nobody owns yet."""
        length = min(2, size.max_model_len)
        for row in (Row(0, [0] * length, 0, [0], GREEDY), Row(0, [0], length - 1, [0], GREEDY)):
            (result,) = self.execute(StepPlan((row,))).rows
            if not all(math.isfinite(entry.logprob) for entry in result.logprobs or ()):
                raise StartError(
                    StartCause.MODEL_CORRUPT,
                    f"The logits of {checkpoint.source.origin} are not numbers: its weights are damaged; download it again.",
                )


class _Clock:
    """Seconds per phase of the start."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, phase: str) -> None:
        now = time.monotonic()
        self.laps[phase] = now - self._last
        self._last = now


def _cache_shape(config: ModelConfig, size: CacheSize, block_size: int, dtype: torch.dtype) -> CacheShape:
    return CacheShape(config.num_layers, size.num_blocks, block_size, config.num_kv_heads, config.head_dim, dtype)
