"""`decide`: what an LLMDeployment means on this cluster, every choice that the user left open made.

Given the resource, a view of the cluster and the operator's own defaults; gives frozen values that everything after it
reads instead of the spec. What depends on the size of the weights is in `sizing.py`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from octavo_operator.api import Credentials, LLMDeployment, Spec
from octavo_operator.observed import ClusterView
from octavo_operator.quantity import GIB
from octavo_operator.spec_problem import SpecProblem

PORT = 8000  # of the serving container and of a downloader's /status
HUB_TOKEN = "HF_TOKEN"  # the container's variable, and the key of a Secret whose spec names none

Value = TypeVar("Value")


class Device(StrEnum):
    """What a replica computes on."""

    CUDA = "cuda"
    CPU = "cpu"


@dataclass(frozen=True, slots=True)
class RenderDefaults:
    """The operator's part in a pod. A new release may change all of it; stored revisions keep what they have."""

    image: str
    operator_version: str
    hub_endpoint: str = ""  # empty: the runtime's own, huggingface.co
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    gpu_resource: str = "nvidia.com/gpu"
    cpu_per_gpu_millicores: int = 4000  # tokenizing and launching kernels beside each GPU
    cpu_millicores: int = 1000  # of a replica without GPU; it may use more when the node has more
    gpu_pod_memory_bytes: int = 8 * GIB  # beside weights and shared memory
    cpu_pod_memory_bytes: int = 2 * GIB  # beside weights
    startup_period_seconds: int = 2
    readiness_period_seconds: int = 2
    liveness_period_seconds: int = 10
    fs_group: int | None = 65532  # who may write on a claim; None where the platform chooses (OpenShift)


@dataclass(frozen=True, slots=True)
class OperatorIdentity:
    """Where the operator's own pods are: they scrape and drain the serving pods."""

    namespace: str


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Flags of `octavo serve`."""

    tensor_parallel_size: int
    pipeline_parallel_size: int
    gpu_memory_utilization: float
    quantization: str
    kv_cache_dtype: str
    dtype: str
    max_model_len: int | None  # tokens; None: the largest that fits
    max_num_seqs: int
    block_size: int
    prefix_caching: bool
    chunked_prefill: bool
    stall_seconds: int  # 0: a hung engine is not looked for


@dataclass(frozen=True, slots=True)
class AutoBounds:
    """Fewest and most replicas in mode Auto; the policy reads the rest of `spec.scaling.auto` itself."""

    min_replicas: int
    max_replicas: int


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """`spec.rollout`, but for what depends on the room there is when the rollout starts."""

    strategy: str
    paused: bool
    revision_history_limit: int
    on_failure: str
    unroute_seconds: int
    drain_seconds: int
    victim: str


@dataclass(frozen=True, slots=True)
class Effective:
    """One LLMDeployment with nothing left open but what the weights decide."""

    device: Device
    image: str
    served_names: tuple[str, ...]
    hub_endpoint: str  # empty: the runtime's own
    gpu_resource: str
    gpus_per_pod: int
    engine: EngineSettings
    replicas: int  # what Git or /scale asks for, even while suspended
    suspended: bool
    scaling_mode: str  # Fixed, External, Auto
    auto: AutoBounds | None
    rollout: RolloutSettings
    network_policy: bool
    pod_monitor: bool
    disruption_budget: bool
    log_prompts: bool
    unmet: tuple[str, ...] = ()  # what the spec asks for and this cluster does not have, a sentence each

    @property
    def fixed_replicas(self) -> int | None:
        """Wanted replicas, where it is not the operator that finds the number; None in Auto."""
        if self.suspended:
            return 0
        return None if self.auto else self.replicas


def decide(
    deployment: LLMDeployment, cluster: ClusterView, defaults: RenderDefaults, device: Device | None = None
) -> Effective:
    """Raises SpecProblem.

    `device`: that of a stored revision. GPU nodes that come or go do not turn what serves into something else.
    """
    spec = deployment.spec
    gpu_resource = spec.resources.gpu_resource or defaults.gpu_resource
    chosen = device or _device(spec, cluster, gpu_resource)
    engine = _engine(spec)
    has_monitors = "PodMonitor" in cluster.kinds
    return Effective(
        device=chosen,
        image=spec.engine.image or defaults.image,
        served_names=spec.model.served_names or (deployment.name,),
        hub_endpoint=(spec.model.endpoint or defaults.hub_endpoint).rstrip("/"),
        gpu_resource=gpu_resource,
        gpus_per_pod=engine.tensor_parallel_size * engine.pipeline_parallel_size if chosen is Device.CUDA else 0,
        engine=engine,
        replicas=1 if spec.replicas is None else spec.replicas,
        suspended=bool(spec.suspend),
        scaling_mode=spec.scaling.mode or "Fixed",
        auto=_auto(spec) if spec.scaling.mode == "Auto" else None,
        rollout=_rollout(spec),
        network_policy=spec.access.network_policy.mode != "Disabled",
        pod_monitor=has_monitors and spec.observability.pod_monitor != "Disabled",
        disruption_budget=spec.disruption.pod_disruption_budget != "Disabled",
        log_prompts=bool(spec.observability.log_prompts),
        unmet=_unmet(spec, has_monitors),
    )


def _device(spec: Spec, cluster: ClusterView, gpu_resource: str) -> Device:
    """`auto` is a GPU wherever the cluster has one at all, busy or not: a model is not moved to the CPU in silence."""
    if spec.engine.device in ("cuda", "cpu"):
        return Device(spec.engine.device)
    return Device.CUDA if any(node.allocatable.get(gpu_resource) for node in cluster.nodes) else Device.CPU


def _engine(spec: Spec) -> EngineSettings:
    engine = spec.engine
    return EngineSettings(
        tensor_parallel_size=engine.tensor_parallel_size or 1,
        pipeline_parallel_size=engine.pipeline_parallel_size or 1,
        gpu_memory_utilization=_or(engine.gpu_memory_utilization, 0.9),
        quantization=engine.quantization or "auto",
        kv_cache_dtype=engine.kv_cache_dtype or "auto",
        dtype=engine.dtype or "auto",
        max_model_len=_max_model_len(engine.max_model_len),
        max_num_seqs=engine.max_num_seqs or 256,
        block_size=engine.block_size or 16,
        prefix_caching=engine.prefix_caching is not False,
        chunked_prefill=engine.chunked_prefill is not False,
        stall_seconds=_or(spec.liveness.engine_stall_seconds, 120),
    )


def _max_model_len(value: int | str | None) -> int | None:
    if value is None or value == "auto":
        return None
    if isinstance(value, str) and not value.isdecimal():
        raise SpecProblem("spec.engine.maxModelLen", f"{value[:40]!r} is neither a number of tokens nor auto.")
    return int(value)


def _auto(spec: Spec) -> AutoBounds:
    auto = spec.scaling.auto
    if auto is None:
        raise SpecProblem("spec.scaling.auto", "mode Auto needs it; write at least auto: {maxReplicas: 3}.")
    return AutoBounds(min_replicas=_or(auto.min_replicas, 1), max_replicas=auto.max_replicas)


def _rollout(spec: Spec) -> RolloutSettings:
    rollout = spec.rollout
    return RolloutSettings(
        strategy=rollout.strategy or "Auto",
        paused=bool(rollout.paused),
        revision_history_limit=rollout.revision_history_limit or 3,
        on_failure=rollout.on_failure or "Rollback",
        unroute_seconds=_or(rollout.drain.unroute_seconds, 10),
        drain_seconds=_or(rollout.drain.timeout_seconds, 300),
        victim=rollout.drain.victim or "LeastInFlight",
    )


def _unmet(spec: Spec, has_monitors: bool) -> tuple[str, ...]:
    if spec.observability.pod_monitor == "Enabled" and not has_monitors:
        return (
            "spec.observability.podMonitor is Enabled, but this cluster has no kind PodMonitor; "
            "install the Prometheus operator or write Auto.",
        )
    return ()


def token_key(credentials: Credentials) -> str:
    """The key of their Secret that holds the hub token."""
    return credentials.secret_ref.key or HUB_TOKEN


def _or(value: Value | None, default: Value) -> Value:
    """Zero is a value."""
    return default if value is None else value
