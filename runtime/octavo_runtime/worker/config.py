"""`WorkerSettings`: what a worker is told at start, and `WorkerReady`: what it found. Needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from octavo_kernels.backend_name import BackendName
from octavo_runtime.model.config import ModelConfig
from octavo_runtime.model.dtype import ModelDtype

AUTO_MODEL_LEN = -1
"""`max_model_len`: the longest context that fits into memory, at most the model's own."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Sizes in bytes, tokens and blocks; the model is already on disk."""

    model_path: Path
    dtype: ModelDtype = ModelDtype.AUTO
    backend: BackendName = BackendName.AUTO
    device: str = "cpu"
    num_threads: int = 0  # 0: one per core that this process may use
    block_size: int = 16
    max_model_len: int | None = None  # None: the model's own
    max_num_seqs: int = 128
    max_num_batched_tokens: int = 2048
    max_logits_rows: int = 256  # prompt-log-probability positions in one step
    num_blocks: int | None = None  # overrides every measure
    kv_cache_memory_bytes: int | None = None  # overrides the share of free memory
    gpu_memory_utilization: float = 0.9  # share of the memory that is free at start: weights, activations and cache
    swap_bytes: int = 0


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """Measured and derived at start; the engine's configuration is completed with it."""

    model: ModelConfig
    backend: str
    dtype: str
    num_blocks: int
    num_host_blocks: int
    block_size: int
    max_model_len: int
    weight_bytes: int
    cache_bytes: int
    timings: Mapping[str, float]  # seconds per phase: open, weights, cache, warm-up
    activation_bytes: int = 0  # the most that a step takes besides weights and cache
    tokens_per_second: float | None = None  # decode of a full batch, as measured
    device: str = "cpu"
