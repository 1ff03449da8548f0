"""`size`: what one replica asks of its node and how long it may take to start, from the size of its weights.

Given the resource, its `Effective`, the weights and the operator's defaults. Sizes in bytes, times in seconds.
"""

from dataclasses import dataclass

from octavo_operator.api import LLMDeployment
from octavo_operator.effective import Device, Effective, RenderDefaults
from octavo_operator.quantity import GIB, MIB, QuantityError, parse_quantity, round_up
from octavo_operator.spec_problem import SpecProblem
from octavo_operator.weights import Download, Weights, place_of

SLOW_LOAD_BYTES_PER_SECOND = 50_000_000  # a busy hub or a network disk; the budget is an upper bound, not an estimate
START_MARGIN_SECONDS = 300  # image caches, compilation, warm-up
SHORTEST_START_SECONDS = 600
UNKNOWN_START_SECONDS = 1800  # weights that only the pod can see
SHORTEST_PROGRESS_SECONDS = 900

CPU_WEIGHT_FACTOR = 1.3  # the CPU backend repacks weights while the files are still mapped
SHM_BYTES = 1 * GIB
PARALLEL_SHM_BYTES = 8 * GIB  # NCCL and Gloo exchange through it; the usual 64 MiB break tensor parallelism
CACHE_SLACK_BYTES = 2 * GIB
OTHER_CACHE_BYTES = 20 * GIB  # only a limit: compiled kernels, or weights of unknown size


@dataclass(frozen=True, slots=True)
class Sizing:
    """A replica's shape. A limit of None is no limit."""

    cpu_millicores: int
    cpu_limit: int | None
    memory_bytes: int
    memory_limit: int | None
    shm_bytes: int  # 0: the container's own few MiB do
    cache_bytes: int  # most that the cache volume may hold
    ephemeral_bytes: int | None  # of the node's disk, asked for where weights are downloaded to it
    startup_seconds: int
    progress_deadline_seconds: int


def size(deployment: LLMDeployment, effective: Effective, weights: Weights, defaults: RenderDefaults) -> Sizing:
    """Raises SpecProblem for a quantity that is none."""
    resources = deployment.spec.resources
    cpu = _given("cpu", resources.cpu)
    memory = _given("memory", resources.memory)
    shm = _shm(effective, _given("shm", resources.shm))
    startup = _startup(deployment, weights)
    downloads = isinstance(place_of(deployment, weights), Download)
    cache = _cache(weights.size_bytes, downloads)
    return Sizing(
        cpu_millicores=cpu or _cpu(effective, defaults),
        cpu_limit=cpu if effective.device is Device.CPU else None,  # how many threads it starts follows from the limit
        memory_bytes=memory or _memory(effective, weights, shm, defaults),
        memory_limit=memory or (None if weights.size_bytes is None else _memory(effective, weights, shm, defaults)),
        shm_bytes=shm,
        cache_bytes=cache,
        ephemeral_bytes=cache if downloads and weights.size_bytes is not None else None,
        startup_seconds=startup,
        progress_deadline_seconds=(
            deployment.spec.rollout.progress_deadline_seconds or max(SHORTEST_PROGRESS_SECONDS, 2 * startup)
        ),
    )


def _given(field: str, value: int | str | None) -> int | None:
    if value is None:
        return None
    try:
        amount = parse_quantity(field, value)
    except QuantityError as error:
        raise SpecProblem(f"spec.resources.{field}", str(error)) from error
    if amount <= 0:
        raise SpecProblem(f"spec.resources.{field}", f"{value} must be more than zero; leave it out for the default.")
    return amount


def _cpu(effective: Effective, defaults: RenderDefaults) -> int:
    if effective.device is Device.CUDA:
        return defaults.cpu_per_gpu_millicores * effective.gpus_per_pod
    return defaults.cpu_millicores


def _shm(effective: Effective, given: int | None) -> int:
    if given is not None:
        return given
    if effective.engine.tensor_parallel_size * effective.engine.pipeline_parallel_size > 1:
        return PARALLEL_SHM_BYTES
    return SHM_BYTES if effective.device is Device.CUDA else 0


def _memory(effective: Effective, weights: Weights, shm: int, defaults: RenderDefaults) -> int:
    """Shared memory counts in it, as the kernel counts it."""
    known = weights.size_bytes or 0
    if effective.device is Device.CUDA:
        return round_up(known + shm + defaults.gpu_pod_memory_bytes, MIB)
    least = int(known * CPU_WEIGHT_FACTOR) + defaults.cpu_pod_memory_bytes
    return round_up(max(least, weights.cpu_memory_bytes or 0) + shm, MIB)


def _cache(size_bytes: int | None, downloads: bool) -> int:
    if size_bytes is None or not downloads:
        return OTHER_CACHE_BYTES
    return round_up(size_bytes * 12 // 10 + CACHE_SLACK_BYTES, MIB)


def _startup(deployment: LLMDeployment, weights: Weights) -> int:
    given = deployment.spec.startup.timeout_seconds
    if given:
        return given
    if weights.size_bytes is None:
        return UNKNOWN_START_SECONDS
    return max(SHORTEST_START_SECONDS, weights.size_bytes // SLOW_LOAD_BYTES_PER_SECOND + START_MARGIN_SECONDS)
