"""Every error that a user can meet, and what HTTP makes of it.

OctavoError
+-- StartError               the server cannot start: `cause` is one of `StartCause`
+-- EngineDeadError          the engine process is gone: 500, the server exits
+-- RequestError             one request is refused, the service goes on
    +-- InvalidRequestError      400  a field is wrong (`param` names it)
    +-- UnauthorizedError        401
    +-- NotFoundError            404  unknown model or path
    +-- MethodNotAllowedError    405
    +-- PayloadTooLargeError     413
    +-- UnsupportedMediaError    415
    +-- QueueFullError           429  with Retry-After
    +-- GenerationFailedError    500  the engine gave the request up after it had begun
    +-- ServiceUnavailableError  503  not ready yet, or draining
"""

from collections.abc import Iterable
from enum import StrEnum


class StartCause(StrEnum):
    """Why a serving process cannot start or go on; written to the termination log as JSON `{"cause", "message"}`."""

    # the model
    MODEL_NOT_FOUND = "ModelNotFound"
    REVISION_NOT_FOUND = "RevisionNotFound"
    MODEL_ACCESS_DENIED = "ModelAccessDenied"
    MODEL_RATE_LIMITED = "ModelRateLimited"
    HUB_UNREACHABLE = "HubUnreachable"
    MODEL_CORRUPT = "ModelCorrupt"
    DIGEST_MISMATCH = "DigestMismatch"
    MODEL_UNSUPPORTED = "ModelUnsupported"
    QUANTIZATION_UNSUPPORTED = "QuantizationUnsupported"
    # the machine
    OUT_OF_MEMORY = "OutOfMemory"
    KV_CACHE_TOO_SMALL = "KVCacheTooSmall"
    DISK_FULL = "DiskFull"
    DEVICE_UNAVAILABLE = "DeviceUnavailable"
    DEVICE_MEMORY_BUSY = "DeviceMemoryBusy"
    ADDRESS_IN_USE = "AddressInUse"
    # the settings
    INVALID_SETTINGS = "InvalidSettings"
    CONTEXT_TOO_LARGE = "ContextTooLarge"
    PARALLELISM_UNSUPPORTED = "ParallelismUnsupported"
    # the run
    STARTUP_DEADLINE_EXCEEDED = "StartupDeadlineExceeded"
    ENGINE_DIED = "EngineDied"
    ENGINE_HUNG = "EngineHung"
    INTERNAL = "Internal"


class OctavoError(Exception):
    """Base of all of Octavo's own errors; the message is one sentence for a person."""


class StartError(OctavoError):
    """The server cannot start (or has to stop): what is wrong and what to do."""

    def __init__(self, cause: StartCause, message: str) -> None:
        super().__init__(message)
        self.cause = cause


def unreadable(error: PermissionError, place: object) -> StartError:
    """Files of the model are there, but not for this user. `place`: named where the system names no file."""
    message = f"{error.filename or place} may not be read by this user; change its permissions, or the user."
    return StartError(StartCause.MODEL_NOT_FOUND, message)


class EngineDeadError(OctavoError):
    """The engine process ended; nothing more will come from it."""


class RequestError(OctavoError):
    """One request is refused. `param` is the public name of the field at fault."""

    status = 400
    type = "BadRequestError"

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class InvalidRequestError(RequestError):
    """A field is wrong."""


class UnauthorizedError(RequestError):
    """No valid API key came with the request."""

    status = 401
    type = "AuthenticationError"


class NotFoundError(RequestError):
    """The model or path does not exist."""

    status = 404
    type = "NotFoundError"


class MethodNotAllowedError(RequestError):
    """The path exists, the method does not."""

    status = 405
    type = "MethodNotAllowedError"

    def __init__(self, method: str, allowed: Iterable[str]) -> None:
        self.allowed = tuple(sorted(allowed))
        super().__init__(f"The method {method[:32]} is not allowed here; use {', '.join(self.allowed)}.")


class PayloadTooLargeError(RequestError):
    """The body is larger than the server accepts."""

    status = 413
    type = "PayloadTooLargeError"


class UnsupportedMediaError(RequestError):
    """The body is not JSON by its Content-Type."""

    status = 415
    type = "UnsupportedMediaTypeError"


class QueueFullError(RequestError):
    """Too many requests wait; come back after `retry_after` seconds."""

    status = 429
    type = "RateLimitError"

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class GenerationFailedError(RequestError):
    """The engine gave the request up after it had begun."""

    status = 500
    type = "InternalServerError"


class ServiceUnavailableError(RequestError):
    """The server is starting or draining."""

    status = 503
    type = "ServiceUnavailableError"
