"""`Reason`: the fixed vocabulary of states, and which of them each start cause of the runtime is.

Status, Events, `kubectl octavo why` and the troubleshooting table of the documentation all speak it; `explanations.py`
says of each what it means and what to do.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Reason(StrEnum):
    """Why an LLMDeployment, or one condition of it, is in the state it is in."""

    # well
    SERVING = "Serving"
    SUSPENDED = "Suspended"
    SCALED_TO_ZERO = "ScaledToZero"
    MODEL_RESOLVED = "ModelResolved"
    MODEL_CACHED = "ModelCached"
    MEMORY_FITS = "MemoryFits"
    SCHEDULED = "Scheduled"
    METRICS_FRESH = "MetricsFresh"
    UPGRADE_AVAILABLE = "UpgradeAvailable"
    # heals by itself: condition Reconciling
    RESOLVING_MODEL = "ResolvingModel"
    DOWNLOADING = "Downloading"
    IMAGE_PULLING = "ImagePulling"
    WAITING_FOR_GPU = "WaitingForGPU"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    WAITING_FOR_NODE = "WaitingForNode"
    WAITING_FOR_VOLUME = "WaitingForVolume"
    STARTING = "Starting"
    LOADING = "Loading"
    WARMING_UP = "WarmingUp"
    ROLLING_OUT = "RollingOut"
    SCALING = "Scaling"
    DRAINING = "Draining"
    PAUSED = "Paused"
    MODEL_RATE_LIMITED = "ModelRateLimited"
    HUB_UNREACHABLE = "HubUnreachable"
    METRICS_LOST = "MetricsLost"
    FEATURE_UNAVAILABLE = "FeatureUnavailable"
    ENGINE_FAILED = "EngineFailed"
    EVICTED = "Evicted"
    NODE_LOST = "NodeLost"
    RECONCILE_FAILED = "ReconcileFailed"
    # needs a person or a new spec: condition Stalled
    SPEC_INVALID = "SpecInvalid"
    MODEL_NOT_FOUND = "ModelNotFound"
    REVISION_NOT_FOUND = "RevisionNotFound"
    MODEL_ACCESS_DENIED = "ModelAccessDenied"
    MODEL_CORRUPT = "ModelCorrupt"
    MODEL_UNSUPPORTED = "ModelUnsupported"
    DIGEST_MISMATCH = "DigestMismatch"
    DOWNLOAD_FAILED = "DownloadFailed"
    REFERENCE_MISSING = "ReferenceMissing"
    STORAGE_CLASS_MISSING = "StorageClassMissing"
    VOLUME_MULTI_ATTACH = "VolumeMultiAttach"
    DISK_FULL = "DiskFull"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CONTAINER_REFUSED = "ContainerRefused"
    POD_SECURITY_DENIED = "PodSecurityDenied"
    ADMISSION_DENIED = "AdmissionDenied"
    NAME_TAKEN = "NameTaken"
    WEIGHTS_TOO_LARGE = "WeightsTooLarge"
    KV_CACHE_TOO_SMALL = "KVCacheTooSmall"
    CONTEXT_TOO_LARGE = "ContextTooLarge"
    QUANTIZATION_UNSUPPORTED = "QuantizationUnsupported"
    PARALLELISM_MISMATCH = "ParallelismMismatch"
    PARALLELISM_UNSUPPORTED = "ParallelismUnsupported"
    SETTINGS_REFUSED = "SettingsRefused"
    DEVICE_UNAVAILABLE = "DeviceUnavailable"
    DEVICE_MEMORY_BUSY = "DeviceMemoryBusy"
    OUT_OF_MEMORY = "OutOfMemory"
    STARTUP_DEADLINE_EXCEEDED = "StartupDeadlineExceeded"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    CRASH_LOOP = "CrashLoop"
    ENGINE_STALLED = "EngineStalled"
    ROLLOUT_BLOCKED_NO_CAPACITY = "RolloutBlockedNoCapacity"
    IMPOSSIBLE_REQUEST = "ImpossibleRequest"


# The runtime's `StartCause` values, as its termination message carries them; a contract test compares the two lists.
FROM_CAUSE: Mapping[str, Reason] = MappingProxyType(
    {
        "ModelNotFound": Reason.MODEL_NOT_FOUND,
        "RevisionNotFound": Reason.REVISION_NOT_FOUND,
        "ModelAccessDenied": Reason.MODEL_ACCESS_DENIED,
        "ModelRateLimited": Reason.MODEL_RATE_LIMITED,
        "HubUnreachable": Reason.HUB_UNREACHABLE,
        "ModelCorrupt": Reason.MODEL_CORRUPT,
        "DigestMismatch": Reason.DIGEST_MISMATCH,
        "ModelUnsupported": Reason.MODEL_UNSUPPORTED,
        "OutOfMemory": Reason.OUT_OF_MEMORY,
        "KVCacheTooSmall": Reason.KV_CACHE_TOO_SMALL,
        "ContextTooLarge": Reason.CONTEXT_TOO_LARGE,
        "InvalidSettings": Reason.SETTINGS_REFUSED,
        "AddressInUse": Reason.SETTINGS_REFUSED,
        "DiskFull": Reason.DISK_FULL,
        "DeviceUnavailable": Reason.DEVICE_UNAVAILABLE,
        "DeviceMemoryBusy": Reason.DEVICE_MEMORY_BUSY,
        "QuantizationUnsupported": Reason.QUANTIZATION_UNSUPPORTED,
        "ParallelismUnsupported": Reason.PARALLELISM_UNSUPPORTED,
        "StartupDeadlineExceeded": Reason.STARTUP_DEADLINE_EXCEEDED,
        "EngineDied": Reason.ENGINE_FAILED,
        "EngineHung": Reason.ENGINE_STALLED,
        "Internal": Reason.ENGINE_FAILED,
    }
)
