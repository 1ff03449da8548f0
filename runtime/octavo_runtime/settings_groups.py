"""The sections of `settings.py`: every setting with its type, default and one line of help.

A field is one flag (the name with dashes; vLLM's name where vLLM has the thing), one environment variable and one key
of the file. Pure declarations: nothing is read here.
"""

import tempfile
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from octavo_kernels.backend_name import BackendName
from octavo_runtime.engine.config import PreemptionMode, SchedulingPolicy
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.manifest import is_digest
from octavo_runtime.model.dtype import ModelDtype
from octavo_runtime.settings_values import ByteSize, Keys, Names, TokenCount


class Group(BaseModel):
    """One section of --help; `title` heads it."""

    title: ClassVar[str] = ""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class ModelSettings(Group):
    """Model settings."""

    title = "Model"

    model: str = Field(
        description="a Hugging Face id, a folder, a .gguf file, an https URL of one, or `embedded`", min_length=1
    )
    served_model_name: Names = Field(default=(), description="names that requests may use; the first one is reported")
    tokenizer: Path | None = Field(
        default=None, description="folder or tokenizer.json to take instead of the model's own"
    )
    revision: str | None = Field(default=None, description="branch, tag or commit of a Hugging Face id")
    download_dir: Path | None = Field(
        default=None, description="where downloads are kept instead of Hugging Face's cache"
    )
    allow_files: Names = Field(default=(), description="globs: files to fetch instead of the usual ones")
    ignore_files: Names = Field(default=(), description="globs: files not to fetch")
    digest: str | None = Field(default=None, description="sha256:HEX that the wanted files must have together")
    quantization: Literal["auto", "none", "awq", "gptq", "squeezellm", "fp8"] = Field(
        default="auto", description="format that the weights must have; auto: as the checkpoint says"
    )
    dtype: ModelDtype = Field(
        default=ModelDtype.AUTO, description="number format of weights and cache; auto is bfloat16"
    )
    max_model_len: TokenCount | None = Field(
        default=None, description="longest prompt plus output, such as 4096 or 32k; -1 or auto: what fits into memory"
    )
    generation_config: str = Field(
        default="auto", description="sampling defaults: auto (the model's), vllm (none) or a folder"
    )
    chat_template: str | None = Field(
        default=None, description="a file with a Jinja chat template, or the template itself"
    )
    load_format: Literal["auto", "safetensors", "gguf"] = Field(
        default="auto", description="form that the weights must have; auto: whatever they have"
    )
    trust_remote_code: bool = Field(
        default=False, description="allow code of the checkpoint; in this release none is ever run"
    )
    seed: int | None = Field(
        default=None,
        ge=-(2**63),
        lt=2**63,
        description="makes requests without a seed repeatable, in the order they come; left out: random",
    )

    @field_validator("max_model_len")
    @classmethod
    def _is_a_length(cls, value: int | None) -> int | None:
        if value is not None and value != -1 and value < 1:
            raise ValueError(f"must be at least 1, or -1 or auto for what fits into memory, got {value}")
        return value

    @field_validator("digest")
    @classmethod
    def _is_a_digest(cls, value: str | None) -> str | None:
        if value is not None and not is_digest(value):
            raise ValueError("must be sha256: and 64 hexadecimal digits in lower case")
        return value


class DeviceSettings(Group):
    """Device settings."""

    title = "Device"

    device: Literal["auto", "cuda", "cpu"] = Field(
        default="auto", description="where the model runs; auto: the CPU, which is all there is in this release"
    )
    backend: BackendName = Field(default=BackendName.AUTO, description="who computes; auto is the fastest there is")
    cpu_threads: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="threads that compute; 0: one per core that this process (its container) may use",
    )
    tensor_parallel_size: int = Field(
        default=1, ge=1, le=1024, description="devices that share each layer; 1 in this release"
    )
    pipeline_parallel_size: int = Field(
        default=1, ge=1, le=1024, description="devices that share the layers in turn; 1 in this release"
    )
    data_parallel_size: int = Field(default=1, description="1 in this release: run more replicas instead")

    @field_validator("data_parallel_size")
    @classmethod
    def _is_one(cls, value: int) -> int:
        if value != 1:
            raise ValueError(f"must be 1: run more replicas instead, got {value}")
        return value


class CacheSettings(Group):
    """KV cache settings."""

    title = "KV cache"

    block_size: int = Field(default=16, description="tokens in a block: 8, 16, 32, 64 or 128")
    gpu_memory_utilization: float = Field(
        default=0.9,
        gt=0,
        le=1,
        description="share of the free memory that weights, activations, swap space and cache may take; "
        "on a CPU the cache takes at most 4 GiB of it (more for one full context)",
    )
    kv_cache_memory_bytes: ByteSize | None = Field(
        default=None, gt=0, description="size of the cache, such as 4GiB, whatever the share"
    )
    num_gpu_blocks_override: int | None = Field(default=None, gt=0, description="number of blocks, whatever fits")
    kv_cache_dtype: Literal["auto", "fp8"] = Field(
        default="auto", description="auto: as --dtype; nothing else in this release"
    )
    enable_prefix_caching: bool = Field(default=True, description="share the cache of equal prompt beginnings")
    swap_space: float = Field(
        default=0.0, ge=0, le=1 << 20, description="GiB of host memory for sequences that are swapped out"
    )

    @field_validator("block_size")
    @classmethod
    def _is_a_block(cls, value: int) -> int:
        if value not in (8, 16, 32, 64, 128):
            raise ValueError(f"must be 8, 16, 32, 64 or 128, got {value}")
        return value


class SchedulerSettings(Group):
    """Scheduler settings."""

    title = "Scheduler"

    max_num_batched_tokens: TokenCount = Field(default=2048, ge=1, description="tokens computed in one step")
    max_num_seqs: int = Field(default=128, ge=1, le=65536, description="sequences that run at once")
    enable_chunked_prefill: bool = Field(
        default=True, description="prompts in pieces beside decodes; off: whole prompts first"
    )
    long_prefill_token_threshold: TokenCount = Field(
        default=0, ge=0, description="tokens of one prompt in a step; 0: no limit"
    )
    scheduler_delay_factor: float = Field(
        default=0.0, ge=0, description="prefill-first: wait this share of the last prompt's time"
    )
    scheduling_policy: SchedulingPolicy = Field(default=SchedulingPolicy.FCFS, description="order of the queue")
    preemption_mode: PreemptionMode = Field(default=PreemptionMode.AUTO, description="what happens when blocks run out")

    @field_validator("max_num_seqs")
    @classmethod
    def _fits_into_a_step(cls, value: int, info: ValidationInfo) -> int:
        tokens = info.data.get("max_num_batched_tokens", value)
        if value > tokens:
            raise ValueError(
                f"must be at most --max-num-batched-tokens ({tokens}), so that every sequence gets on, got {value}"
            )
        return value


class ServerSettings(Group):
    """Server settings."""

    title = "Server"

    host: str = Field(default="0.0.0.0", description="address to listen on")
    port: int = Field(default=8000, ge=0, le=65535, description="port to listen on; 0: any free one")
    root_path: str = Field(default="", description="path under which a proxy serves this server")
    api_key: Keys = Field(
        default=(), repr=False, description="key that requests must send, repeat it for several; also VLLM_API_KEY"
    )
    api_key_file: Path | None = Field(
        default=None, description="file with one key a line, or sha256:HEX of one; read again when it changes"
    )
    admin_key_file: Path | None = Field(
        default=None, description="the same for /drain, which is there only with this file"
    )
    allowed_origins: Names = Field(default=("*",), description="CORS: origins")
    allowed_methods: Names = Field(default=("*",), description="CORS: methods")
    allowed_headers: Names = Field(default=("*",), description="CORS: headers")
    allow_credentials: bool = Field(default=False, description="CORS: credentials")
    ssl_keyfile: Path | None = Field(default=None, description="TLS: private key")
    ssl_certfile: Path | None = Field(default=None, description="TLS: certificate")
    ssl_ca_certs: Path | None = Field(
        default=None, description="TLS: authorities whose client certificates are asked for"
    )
    max_body_bytes: ByteSize = Field(default=32 << 20, ge=1024, description="largest request body")
    max_logprobs: int = Field(default=20, ge=-1, description="most log-probabilities per token; -1: no limit")
    max_num_queued_reqs: int = Field(
        default=2048, ge=0, description="requests that may wait before others get a 429; 0: no limit"
    )
    max_num_queued_tokens: TokenCount = Field(
        default=0, ge=0, description="prompt tokens that may wait before other requests get a 429; 0: no limit"
    )
    stream_interval: int = Field(default=1, ge=1, description="tokens per streamed event")
    keep_alive: float = Field(default=75.0, ge=0, description="seconds that an idle connection stays open")
    shutdown_timeout: float = Field(default=20.0, ge=0, description="seconds that running requests have after SIGTERM")
    startup_timeout: float = Field(
        default=0.0,
        ge=0,
        description="seconds until it must be ready, download included, or it exits with the cause; 0: no limit",
    )
    engine_hang_timeout: float = Field(
        default=300.0,
        ge=0,
        description="seconds of one engine step after which it counts as hung and the server exits; 0: never",
    )
    enable_request_id_headers: bool = Field(default=False, description="send X-Request-Id back")
    enable_prompt_tokens_details: bool = Field(default=False, description="report cached prompt tokens in usage")


class LogSettings(Group):
    """Logging settings."""

    title = "Logging"

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least level that is logged"
    )
    log_format: Literal["text", "json"] = Field(default="text", description="form of log lines")
    disable_access_log: bool = Field(default=False, description="no line per request")
    log_prompts: bool = Field(default=False, description="log the beginning of every prompt; they may be private")
    termination_log: Path = Field(
        default=Path("/dev/termination-log"), description="where the cause of a failure is left as JSON"
    )
    cache_dir: Path = Field(default=Path("~/.cache/octavo"), description="where converted tokenizers are kept")

    @property
    def tokenizer_cache(self) -> Path:
        """`cache_dir` with its tilde resolved; a user without a home keeps things for as long as /tmp does."""
        try:
            return self.cache_dir.expanduser()
        except RuntimeError:
            return Path(tempfile.gettempdir()) / "octavo"

    @property
    def as_json(self) -> bool:
        """Whether every line on standard error is one JSON object."""
        return self.log_format == "json"


GROUPS: Mapping[str, type[Group]] = {
    "model": ModelSettings,
    "device": DeviceSettings,
    "cache": CacheSettings,
    "scheduler": SchedulerSettings,
    "server": ServerSettings,
    "log": LogSettings,
}


def flag_name(field: str) -> str:
    """`max_model_len` -> `--max-model-len`."""
    return "--" + field.replace("_", "-")


def group_of(field: str) -> str:
    """The group that has this field; StartError(INVALID_SETTINGS) when none has."""
    for name, group in GROUPS.items():
        if field in group.model_fields:
            return name
    close = get_close_matches(field, [name for group in GROUPS.values() for name in group.model_fields], n=1)
    hint = f"; did you mean {flag_name(close[0])}?" if close else "."
    raise StartError(StartCause.INVALID_SETTINGS, f"There is no setting {flag_name(field)}{hint}")
