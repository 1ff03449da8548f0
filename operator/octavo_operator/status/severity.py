"""Which of several findings is told: what blocks before what heals, then by this list."""

from collections.abc import Iterable

from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding

SEVERITY: tuple[Reason, ...] = (
    Reason.SPEC_INVALID,  # nothing else was even tried
    # the model: no pod can help
    Reason.MODEL_ACCESS_DENIED,
    Reason.MODEL_NOT_FOUND,
    Reason.REVISION_NOT_FOUND,
    Reason.DIGEST_MISMATCH,  # may be an attack
    Reason.MODEL_CORRUPT,
    Reason.MODEL_UNSUPPORTED,
    # the plan: refused before a device was asked for
    Reason.PARALLELISM_MISMATCH,
    Reason.PARALLELISM_UNSUPPORTED,
    Reason.QUANTIZATION_UNSUPPORTED,
    Reason.CONTEXT_TOO_LARGE,
    Reason.WEIGHTS_TOO_LARGE,
    Reason.KV_CACHE_TOO_SMALL,
    Reason.SETTINGS_REFUSED,
    # what pods need and is not there
    Reason.REFERENCE_MISSING,
    Reason.STORAGE_CLASS_MISSING,
    Reason.VOLUME_MULTI_ATTACH,
    Reason.DISK_FULL,
    Reason.DOWNLOAD_FAILED,
    Reason.IMPOSSIBLE_REQUEST,
    # pods refused
    Reason.POD_SECURITY_DENIED,
    Reason.ADMISSION_DENIED,
    Reason.NAME_TAKEN,
    Reason.IMAGE_PULL_FAILED,
    Reason.CONTAINER_REFUSED,
    # pods that ran and failed
    Reason.DEVICE_UNAVAILABLE,
    Reason.DEVICE_MEMORY_BUSY,
    Reason.OUT_OF_MEMORY,
    Reason.ENGINE_STALLED,
    Reason.STARTUP_DEADLINE_EXCEEDED,
    Reason.CRASH_LOOP,
    Reason.ENGINE_FAILED,
    Reason.EVICTED,
    Reason.NODE_LOST,
    # a rollout given up for no better-known cause
    Reason.ROLLOUT_BLOCKED_NO_CAPACITY,
    Reason.PROGRESS_DEADLINE_EXCEEDED,
    # waiting for others
    Reason.RECONCILE_FAILED,  # what follows may be stale
    Reason.MODEL_RATE_LIMITED,
    Reason.HUB_UNREACHABLE,
    Reason.WAITING_FOR_QUOTA,
    Reason.WAITING_FOR_GPU,
    Reason.WAITING_FOR_NODE,
    Reason.WAITING_FOR_VOLUME,
    Reason.PAUSED,
    # progress, the earliest step first: the slowest pod decides
    Reason.RESOLVING_MODEL,
    Reason.IMAGE_PULLING,
    Reason.STARTING,
    Reason.DOWNLOADING,
    Reason.LOADING,
    Reason.WARMING_UP,
    Reason.ROLLING_OUT,
    Reason.SCALING,
    Reason.DRAINING,
    # serving all the same
    Reason.METRICS_LOST,
    Reason.FEATURE_UNAVAILABLE,
    Reason.UPGRADE_AVAILABLE,
    # well
    Reason.SUSPENDED,
    Reason.SCALED_TO_ZERO,
    Reason.SERVING,
    Reason.SCHEDULED,
    Reason.MEMORY_FITS,
    Reason.MODEL_CACHED,
    Reason.MODEL_RESOLVED,
    Reason.METRICS_FRESH,
)


def worst(findings: Iterable[Finding]) -> Finding | None:
    """The finding that matters most; of equal ones the pod that comes first by name, so that it does not flicker."""
    return min(findings, key=_rank, default=None)


def _rank(finding: Finding) -> tuple[bool, int, str]:
    return not finding.blocks, SEVERITY.index(finding.reason), finding.pod
