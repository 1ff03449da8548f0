"""`Settings`: everything that can be chosen at start, as a frozen tree. The only reader of the environment.

Flags go before the environment (`OCTAVO_<FIELD>`), that before the file (--config), the file before the default.
`settings_groups.py` declares the fields, `cli/flags.py` turns an argument list into the flags' layer.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from octavo_runtime.engine.config import CacheConfig, SchedulerConfig
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.hub import ModelSource
from octavo_runtime.settings_groups import (
    GROUPS,
    CacheSettings,
    DeviceSettings,
    LogSettings,
    ModelSettings,
    SchedulerSettings,
    ServerSettings,
    flag_name,
    group_of,
)
from octavo_runtime.worker.config import WorkerSettings

ENVIRONMENT_PREFIX = "OCTAVO_"
KEY_VARIABLES = ("OCTAVO_API_KEY", "VLLM_API_KEY")
GIB = 1 << 30


class Settings(BaseModel):
    """All groups."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: ModelSettings
    device: DeviceSettings = DeviceSettings()
    cache: CacheSettings = CacheSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    server: ServerSettings = ServerSettings()
    log: LogSettings = LogSettings()

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "Settings":
        """From field names (flags' names with underscores) to values; StartError(INVALID_SETTINGS) names the flag."""
        groups: dict[str, dict[str, Any]] = {name: {} for name in GROUPS}
        for field, value in values.items():
            groups[group_of(field)][field] = value
        try:
            return cls.model_validate(groups)
        except ValidationError as error:
            raise StartError(StartCause.INVALID_SETTINGS, _sentence(error)) from error

    def to_json(self) -> str:
        """For the engine process. Carries no API keys: that process has no use for them."""
        return self.model_dump_json(exclude={"server": {"api_key"}})

    @classmethod
    def from_json(cls, text: str | bytes) -> "Settings":
        """What `to_json` wrote."""
        return cls.model_validate_json(text)

    def with_model(self, path: Path) -> "Settings":
        """The same with the model's place on this machine instead of its name: nothing is looked up twice."""
        model = self.model.model_copy(update={"model": str(path), "revision": None})
        return self.model_copy(update={"model": model})

    def scheduler_config(self, max_model_len: int) -> SchedulerConfig:
        """`max_model_len` in tokens, as the worker settled it."""
        chosen = self.scheduler
        return SchedulerConfig(
            max_num_batched_tokens=chosen.max_num_batched_tokens,
            max_num_seqs=self._max_num_seqs,
            max_model_len=max_model_len,
            chunked_prefill=chosen.enable_chunked_prefill,
            delay_factor=chosen.scheduler_delay_factor,
            long_prefill_token_threshold=chosen.long_prefill_token_threshold,
            policy=chosen.scheduling_policy,
            preemption_mode=chosen.preemption_mode,
            seed=self.model.seed,
        )

    def cache_config(self, num_blocks: int, num_host_blocks: int) -> CacheConfig:
        """Blocks as the worker measured them."""
        return CacheConfig(
            block_size=self.cache.block_size,
            num_blocks=num_blocks,
            num_host_blocks=num_host_blocks,
            prefix_caching=self.cache.enable_prefix_caching,
        )

    def worker_settings(self, source: ModelSource) -> WorkerSettings:
        """The worker's part. Raises StartError(INVALID_SETTINGS) when the weights have not the form of --load-format."""
        wanted = self.model.load_format
        if wanted not in ("auto", source.kind.value):
            raise _invalid(
                f"--load-format is {wanted}, but {source.path} holds {source.kind.value}; leave the flag out."
            )
        cache, scheduler = self.cache, self.scheduler
        return WorkerSettings(
            model_path=source.path,
            dtype=self.model.dtype,
            backend=self.device.backend,
            device="cpu",
            num_threads=self.device.cpu_threads,
            block_size=cache.block_size,
            max_model_len=self.model.max_model_len,
            max_num_seqs=self._max_num_seqs,
            max_num_batched_tokens=scheduler.max_num_batched_tokens,
            num_blocks=cache.num_gpu_blocks_override,
            kv_cache_memory_bytes=cache.kv_cache_memory_bytes,
            gpu_memory_utilization=cache.gpu_memory_utilization,
            swap_bytes=self.swap_bytes,
        )

    @property
    def swap_bytes(self) -> int:
        """Host memory for swapped sequences."""
        return int(self.cache.swap_space * GIB)

    @property
    def _max_num_seqs(self) -> int:
        """Every running sequence gets on in a step; the default of one setting is above a small other one."""
        return min(self.scheduler.max_num_seqs, self.scheduler.max_num_batched_tokens)

    @property
    def served_names(self) -> tuple[str, ...]:
        """Names that requests may use; empty: the resolved model's own name."""
        return self.model.served_model_name

    def api_keys(self) -> tuple[str, ...]:
        """All keys, those of the file included. Raises StartError(INVALID_SETTINGS) when the file cannot be read."""
        file = self.server.api_key_file
        try:
            lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()] if file else []
        except (OSError, UnicodeDecodeError) as error:
            raise _invalid(f"--api-key-file {file} cannot be read ({error}).") from error
        if file and not any(lines):
            raise _invalid(f"--api-key-file {file} holds no key.")
        return (*self.server.api_key, *filter(None, lines))


def load_settings(flags: Mapping[str, Any], config_file: Path | None = None) -> Settings:
    """Put the layers over each other: `flags` (by field name), the process's environment, the file, the defaults.

    `config_file` is --config (YAML); without it OCTAVO_CONFIG names the file. Raises StartError(INVALID_SETTINGS).
    """
    environment = _from_environment(os.environ)
    named = os.environ.get(ENVIRONMENT_PREFIX + "CONFIG")
    file = config_file or (Path(named) if named else None)
    return Settings.from_values({**(_from_file(file) if file else {}), **environment, **flags})


def engine_environment(settings: Settings) -> dict[str, str]:
    """Environment of the engine process: this one's, and what must stand before torch and the allocator start.

    Freed memory is kept instead of being given back and faulted in again at every step (28 -> 11 ms on a strided
    batched product). What the user has set stands, but for the API keys: that process has no use for them.
    """
    wanted = {
        "MALLOC_MMAP_THRESHOLD_": str(GIB),
        "MALLOC_TRIM_THRESHOLD_": str(4 * GIB),
        "MALLOC_TOP_PAD_": str(64 << 20),
        "TOKENIZERS_PARALLELISM": "false",
    }
    if settings.device.cpu_threads:
        wanted["OMP_NUM_THREADS"] = str(settings.device.cpu_threads)
    return wanted | {name: value for name, value in os.environ.items() if name not in KEY_VARIABLES}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """OCTAVO_<FIELD> variables that name a setting; others (OCTAVO_CONFIG, services' variables) are not settings."""
    values: dict[str, Any] = {}
    for group in GROUPS.values():
        for field in group.model_fields:
            value = environment.get(ENVIRONMENT_PREFIX + field.upper())
            if value and not value.startswith("tcp://"):  # Kubernetes' own variables for a service named octavo
                values[field] = value
    keys = [environment[name] for name in KEY_VARIABLES if name in environment]
    return values | ({"api_key": keys[0]} if keys else {})  # an empty one too: it is refused


def _from_file(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(f"--config {file} cannot be read ({error}).") from error
    except yaml.YAMLError as error:
        raise _invalid(f"--config {file} is not valid YAML ({' '.join(str(error).split())}).") from error
    if not isinstance(content, dict):
        raise _invalid(f"--config {file} must hold `setting: value` lines.")
    values = {str(key).replace("-", "_"): value for key, value in content.items()}
    for field in values:
        group_of(field)
    return values


def _sentence(error: ValidationError) -> str:
    """The first problem in one sentence that begins with the flag."""
    problem = error.errors()[0]
    field = str(problem["loc"][1])
    if field == "model" and problem["type"] == "missing":
        return "No model is given: name a Hugging Face id, a folder, a .gguf file or `embedded`."
    if problem["type"] == "value_error":
        return f"{flag_name(field)} {problem['msg'].removeprefix('Value error, ')}."
    message = problem["msg"].partition(",")[0] if "unable to" in problem["msg"] else problem["msg"]
    sentence = f"{flag_name(field)} must be {message.removeprefix('Input should be ')}"
    secret = not GROUPS[group_of(field)].model_fields[field].repr
    return f"{sentence}." if secret else f"{sentence}, got {str(problem['input'])[:100]!r}."


def _invalid(message: str) -> StartError:
    return StartError(StartCause.INVALID_SETTINGS, message)
