"""Exceptions -> OpenAI's error body and HTTP status. The one place that decides what a client learns of a failure."""

import http
import logging

import msgspec
from aiohttp import web

from octavo_runtime.errors import (
    EngineDeadError,
    MethodNotAllowedError,
    NotFoundError,
    QueueFullError,
    RequestError,
    ServiceUnavailableError,
)

_log = logging.getLogger("octavo.server")
_MAX_MESSAGE = 1000  # characters
_RETRY_LATER = 2  # seconds, for 503


def error_body(error: Exception) -> tuple[int, bytes]:
    """Status and `{"error": {message, type, param, code}}`. The unexpected is logged and reported without details."""
    match error:
        case RequestError():
            status, kind, message, param = error.status, error.type, str(error), error.param
        case EngineDeadError():
            status, kind, param = 500, "InternalServerError", None
            message = "The engine ended; the server's log has the cause. Send the request to another replica."
        case web.HTTPException():
            status, message, param = error.status, f"{error.reason}.", None
            kind = "BadRequestError" if status < http.HTTPStatus.INTERNAL_SERVER_ERROR else "InternalServerError"
        case _:
            _log.error("unexpected error", exc_info=error)
            status, kind, param = 500, "InternalServerError", None
            message = "The server failed on this request; its log has the cause."
    if len(message) > _MAX_MESSAGE:
        message = message[:_MAX_MESSAGE] + "..."
    content = {"message": message, "type": kind, "param": param, "code": status}
    return status, msgspec.json.encode({"error": content})


def error_response(error: Exception) -> web.Response:
    """`error_body` as a whole response, with Retry-After or Allow where they belong."""
    error = _of_router(error)
    status, body = error_body(error)
    response = web.Response(status=status, body=body, content_type="application/json")
    match error:
        case QueueFullError():
            response.headers["Retry-After"] = str(error.retry_after)
        case ServiceUnavailableError():
            response.headers["Retry-After"] = str(_RETRY_LATER)
        case MethodNotAllowedError():
            response.headers["Allow"] = ",".join(error.allowed)
    if status == http.HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _of_router(error: Exception) -> Exception:
    """What aiohttp's router refuses, as our own errors."""
    match error:
        case web.HTTPMethodNotAllowed():
            return MethodNotAllowedError(error.method, error.allowed_methods)
        case web.HTTPNotFound():
            return NotFoundError("There is nothing under this path.")
        case _:
            return error
