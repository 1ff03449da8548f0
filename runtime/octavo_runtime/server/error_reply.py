"""Exceptions -> OpenAI's error body and HTTP status. The one place that decides what a client learns of a failure."""

import http
import logging

import msgspec
from aiohttp import web

from octavo_runtime.errors import EngineDeadError, QueueFullError, RequestError, ServiceUnavailableError

_log = logging.getLogger("octavo.server")
_MAX_MESSAGE = 1000  # characters
_RETRY_LATER = 2  # seconds, for 503


def error_body(error: Exception) -> tuple[int, bytes]:
    """Status and `{"error": {message, type, param, code}}`. The unexpected is logged and reported without details."""
    match error:
        case RequestError():
            status, kind, message, param = error.status, error.type, str(error), error.param
        case EngineDeadError():
            status, kind, message, param = 500, "InternalServerError", str(error), None
        case web.HTTPException():
            status = error.status
            kind, message, param = _http_kind(status), _http_message(error), None
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
    status, body = error_body(error)
    response = web.Response(status=status, body=body, content_type="application/json")
    match error:
        case QueueFullError():
            response.headers["Retry-After"] = str(error.retry_after)
        case ServiceUnavailableError():
            response.headers["Retry-After"] = str(_RETRY_LATER)
        case web.HTTPMethodNotAllowed():
            response.headers["Allow"] = ",".join(sorted(error.allowed_methods))
    if status == http.HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _http_kind(status: int) -> str:
    names = {
        404: "NotFoundError",
        405: "MethodNotAllowedError",
        413: "PayloadTooLargeError",
        415: "UnsupportedMediaTypeError",
    }
    return names.get(status, "BadRequestError" if status < 500 else "InternalServerError")


def _http_message(error: web.HTTPException) -> str:
    match error:
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(error.allowed_methods))
            return f"The method {error.method} is not allowed here; use {allowed}."
        case web.HTTPNotFound():
            return "There is nothing under this path."
        case _:
            return f"{error.reason}."
