"""`Settings`: everything that can be chosen at start, as a frozen tree. The only reader of the environment.

Flags go before the environment (`OCTAVO_<FIELD>`), that before the file (--config), the file before the default.
`settings_groups.py` declares the fields, `cli/flags.py` turns an argument list into the flags' layer.
"""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from octavo_runtime.engine.config import CacheConfig, SchedulerConfig
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.manifest import FetchOptions, FileChoice
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
from octavo_runtime.supported import check_supported, warnings_of
from octavo_runtime.worker.config import WorkerSettings

ENVIRONMENT_PREFIX = "OCTAVO_"
KEY_VARIABLES = ("OCTAVO_API_KEY", "VLLM_API_KEY")
SECRET_VARIABLES = (*KEY_VARIABLES, "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
BUILD_CACHE_VARIABLE = "OCTAVO_CACHE"  # of the Makefile: a checkout's builds; none of ours, though it looks like one
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
    def from_values(cls, values: Mapping[str, Any], origins: Mapping[str, str] | None = None) -> "Settings":
        """From field names (flags' names with underscores) to values; StartError(INVALID_SETTINGS) names the flag.

        `origins`: where the values came from that no flag gave.
        """
        groups: dict[str, dict[str, Any]] = {name: {} for name in GROUPS}
        for field, value in values.items():
            groups[group_of(field)][field] = value
        try:
            return cls.model_validate(groups)
        except ValidationError as error:
            raise StartError(StartCause.INVALID_SETTINGS, _sentence(error, origins or {})) from error

    def to_json(self) -> str:
        """For the engine process. Carries no API keys: that process has no use for them."""
        return self.model_dump_json(exclude={"server": {"api_key"}})

    @classmethod
    def from_json(cls, text: str | bytes) -> "Settings":
        """What `to_json` wrote."""
        return cls.model_validate_json(text)

    def with_model(self, path: Path) -> "Settings":
        """The same with the model's place on this machine instead of its name: nothing is looked up twice."""
        model = self.model.model_copy(update={"model": str(path), "revision": None, "digest": None})
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
        """The worker's part. Raises StartError when this build, or --load-format, refuses the model."""
        self.check_supported()
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

    def fetch_options(self) -> FetchOptions:
        """How the model is fetched, when it is not on this machine."""
        model = self.model
        choice = FileChoice(model.allow_files, model.ignore_files)
        return FetchOptions(model.revision, model.download_dir, choice, model.digest)

    def check_supported(self) -> None:
        """Raises StartError for what this build cannot do."""
        check_supported(self.model, self.device, self.cache)

    def warnings(self) -> list[str]:
        """What does not mean here what it says."""
        return warnings_of(self.model)


def load_settings(flags: Mapping[str, Any], config_file: Path | None = None) -> Settings:
    """Put the layers over each other: `flags` (by field name), the process's environment, the file, the defaults.

    `config_file` is --config (YAML); without it OCTAVO_CONFIG names the file. Raises StartError(INVALID_SETTINGS).
    """
    environment = _from_environment(os.environ)
    named = os.environ.get(ENVIRONMENT_PREFIX + "CONFIG")
    file = config_file or (Path(named) if named else None)
    in_file = _from_file(file) if file else {}
    origins = {field: str(file) for field in in_file} | {field: _variable_of(field) for field in environment}
    told = {field: origin for field, origin in origins.items() if field not in flags}
    return Settings.from_values({**in_file, **environment, **flags}, told)


def misspelt_variables() -> list[str]:
    """One sentence for each variable of the environment that is nearly one of ours."""
    known = {ENVIRONMENT_PREFIX + field.upper() for group in GROUPS.values() for field in group.model_fields}
    known.add(BUILD_CACHE_VARIABLE)
    sentences = []
    for name in sorted(os.environ):
        close = get_close_matches(name, known, n=1, cutoff=0.85)
        if name.startswith(ENVIRONMENT_PREFIX) and name not in known and close:
            sentences.append(f"{name} is not a setting; did you mean {close[0]}?")
    return sentences


def engine_environment(settings: Settings) -> dict[str, str]:
    """Environment of the engine process: this one's, and what must stand before torch and the allocator start.

    Freed memory is kept instead of being given back and faulted in again at every step (28 -> 11 ms on a strided
    batched product). What the user has set stands, but for keys and tokens: that process has no use for them.
    """
    wanted = {
        "MALLOC_MMAP_THRESHOLD_": str(GIB),
        "MALLOC_TRIM_THRESHOLD_": str(4 * GIB),
        "MALLOC_TOP_PAD_": str(64 << 20),
        "TOKENIZERS_PARALLELISM": "false",
    }
    if settings.device.cpu_threads:
        wanted["OMP_NUM_THREADS"] = str(settings.device.cpu_threads)
    return wanted | {name: value for name, value in os.environ.items() if name not in SECRET_VARIABLES}


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


def _variable_of(field: str) -> str:
    if field == "api_key":
        return next(name for name in KEY_VARIABLES if name in os.environ)
    return ENVIRONMENT_PREFIX + field.upper()


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


def _sentence(error: ValidationError, origins: Mapping[str, str]) -> str:
    """The first problem in one sentence that begins with the flag and ends with where the value came from."""
    problem = error.errors()[0]
    field = str(problem["loc"][1])
    sentence = _problem(field, problem)
    origin = origins.get(field)
    return f"{sentence[:-1]} (from {origin})." if origin else sentence


def _problem(field: str, problem: ErrorDetails) -> str:
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
