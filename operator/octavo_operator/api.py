"""`LLMDeployment`: the resource as frozen values, read from the raw object that the API server gave.

Given the object of `crds/llmdeployments.yaml`, whose field names these are in camel case. A field that the user left out
is None (or empty); what it then means is decided in `effective.py`. Knows neither the cluster nor how pods look.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

GROUP = "octavo.dev"
VERSION = "v1alpha1"
KIND = "LLMDeployment"
PLURAL = "llmdeployments"


class _Part(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A block of the spec."""


class KeyRef(_Part, frozen=True):
    """One key of a Secret or ConfigMap in the same namespace."""

    name: str
    key: str | None = None


class Credentials(_Part, frozen=True):
    """The hub token."""

    secret_ref: KeyRef


class ChatTemplate(_Part, frozen=True):
    """A Jinja chat template in a ConfigMap."""

    config_map_key_ref: KeyRef


class Files(_Part, frozen=True):
    """Globs that choose files of the repository."""

    allow: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


class Model(_Part, frozen=True):
    """`spec.model`: which weights."""

    uri: str  # hf://ORG/NAME, pvc://CLAIM/PATH, file:///PATH, https://HOST/FILE.gguf
    revision: str | None = None
    served_names: tuple[str, ...] = ()
    digest: str | None = None  # sha256:<64 hex> of the file manifest
    files: Files = Files()
    credentials: Credentials | None = None
    endpoint: str | None = None
    trust_remote_code: bool | None = None
    chat_template: ChatTemplate | None = None


class Engine(_Part, frozen=True):
    """`spec.engine`: how it runs; each field is a flag of `octavo serve`."""

    image: str | None = None
    device: Literal["auto", "cuda", "cpu"] | None = None
    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    gpu_memory_utilization: float | None = None
    quantization: Literal["auto", "none", "awq", "gptq", "squeezellm", "fp8"] | None = None
    kv_cache_dtype: Literal["auto", "fp8"] | None = None
    dtype: Literal["auto", "float16", "bfloat16", "float32"] | None = None
    max_model_len: int | str | None = None  # tokens, or "auto"
    max_num_seqs: int | None = None
    block_size: int | None = None
    prefix_caching: bool | None = None
    chunked_prefill: bool | None = None
    extra_args: tuple[str, ...] = ()


class Resources(_Part, frozen=True):
    """`spec.resources`: what one replica asks of its node. Quantities as Kubernetes writes them."""

    gpu_resource: str | None = None
    cpu: int | str | None = None
    memory: int | str | None = None
    shm: int | str | None = None
    gpu_products: tuple[str, ...] = ()
    priority_class_name: str | None = None


class ScalingTargets(_Part, frozen=True):
    """What a replica should carry; the largest wanted count wins."""

    waiting_requests: int | None = None
    kv_cache_usage: float | None = None


class ScalingStep(_Part, frozen=True):
    """How fast one direction may move."""

    stabilization_seconds: int | None = None
    max_pods: int | None = None
    period_seconds: int | None = None


class AutoScaling(_Part, frozen=True):
    """`spec.scaling.auto`."""

    max_replicas: int
    min_replicas: int | None = None
    targets: ScalingTargets = ScalingTargets()
    scale_up: ScalingStep = ScalingStep()
    scale_down: ScalingStep = ScalingStep()
    on_metrics_lost: Literal["Hold", "ScaleToMax"] | None = None


class Scaling(_Part, frozen=True):
    """`spec.scaling`: who owns the number of replicas."""

    mode: Literal["Fixed", "External", "Auto"] | None = None
    auto: AutoScaling | None = None


class Drain(_Part, frozen=True):
    """`spec.rollout.drain`, seconds."""

    timeout_seconds: int | None = None
    unroute_seconds: int | None = None
    victim: Literal["LeastInFlight", "Oldest"] | None = None


class Rollout(_Part, frozen=True):
    """`spec.rollout`: how one revision replaces another."""

    strategy: Literal["Auto", "Surge", "InPlace", "Recreate"] | None = None
    max_surge: int | None = None
    max_unavailable: int | None = None
    paused: bool | None = None
    progress_deadline_seconds: int | None = None
    revision_history_limit: int | None = None
    on_failure: Literal["Rollback", "Hold"] | None = None
    drain: Drain = Drain()


class Startup(_Part, frozen=True):
    """`spec.startup`."""

    timeout_seconds: int | None = None


class Liveness(_Part, frozen=True):
    """`spec.liveness`."""

    engine_stall_seconds: int | None = None


class SharedPVC(_Part, frozen=True):
    """`spec.cache.sharedPVC`: an existing claim, or one that the operator makes."""

    claim_name: str | None = None
    storage_class_name: str | None = None
    size: int | str | None = None
    access_mode: Literal["ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany"] | None = None


class Cache(_Part, frozen=True):
    """`spec.cache`: where weights are kept between pods."""

    mode: Literal["None", "SharedPVC"] | None = None
    shared_pvc: Annotated[SharedPVC | None, msgspec.Meta()] = msgspec.field(name="sharedPVC", default=None)


class ApiKeys(_Part, frozen=True):
    """Secrets whose every value is an API key, chosen by label."""

    secret_selector: Mapping[str, str]  # matchLabels
    required: bool | None = None


class NetworkPolicy(_Part, frozen=True):
    """Who may reach the pods."""

    mode: Literal["Managed", "Disabled"] | None = None
    allow_from: tuple[Mapping[str, Any], ...] = ()  # NetworkPolicyPeer


class Tls(_Part, frozen=True):
    """A Secret of type kubernetes.io/tls."""

    secret_name: str


class Access(_Part, frozen=True):
    """`spec.access`."""

    api_keys: ApiKeys | None = None
    network_policy: NetworkPolicy = NetworkPolicy()
    tls: Tls | None = None


class Observability(_Part, frozen=True):
    """`spec.observability`."""

    pod_monitor: Literal["Auto", "Enabled", "Disabled"] | None = None
    log_prompts: bool | None = None


class Disruption(_Part, frozen=True):
    """`spec.disruption`."""

    pod_disruption_budget: Literal["Auto", "Disabled"] | None = None


class Pod(_Part, frozen=True):
    """`spec.pod`: the way out of what the typed fields offer. Kubernetes' own forms, applied last."""

    env: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Mapping[str, Any], ...] = ()
    service_account_name: str | None = None
    patch: Mapping[str, Any] = {}  # strategic merge patch of the pod template


class Spec(_Part, frozen=True):
    """`spec`."""

    model: Model
    engine: Engine = Engine()
    resources: Resources = Resources()
    replicas: int | None = None
    suspend: bool | None = None
    scaling: Scaling = Scaling()
    rollout: Rollout = Rollout()
    startup: Startup = Startup()
    liveness: Liveness = Liveness()
    cache: Cache = Cache()
    access: Access = Access()
    observability: Observability = Observability()
    disruption: Disruption = Disruption()
    pod: Pod = Pod()


class LLMDeployment(msgspec.Struct, frozen=True, kw_only=True):
    """One resource: identity, generation, spec, and the status as last written, of which little is read back."""

    namespace: str
    name: str
    uid: str
    generation: int
    spec: Spec
    status: Mapping[str, Any] = {}  # transition times, a rollout's strategy, the autoscaler's number and decisions


class SpecError(Exception):
    """The spec cannot be read: the path of the field and what is wrong."""


def parse(raw: Mapping[str, Any]) -> LLMDeployment:
    """The resource of a raw object. Raises SpecError, which names the field (`spec.engine.blockSize`)."""
    metadata = raw["metadata"]
    try:
        spec = msgspec.convert(raw.get("spec", {}), Spec)
    except msgspec.ValidationError as error:
        raise SpecError(str(error).replace("`$", "`spec")) from error
    return LLMDeployment(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        spec=spec,
        status=raw.get("status") or {},
    )
