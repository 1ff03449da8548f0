"""What every call passes: request id, access log, errors as JSON, CORS, API keys, the wait for the model, counting.

`middlewares` gives them in order, outermost first. Prompts and keys never reach the log.
"""

import logging
import time
from urllib.parse import quote

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from octavo_runtime.errors import EngineDeadError, ServiceUnavailableError, UnauthorizedError
from octavo_runtime.server.config import ServerConfig
from octavo_runtime.server.error_reply import error_response
from octavo_runtime.server.service import ARRIVAL, REQUEST_ID, SERVICE, Service, clean_id, new_id

_access = logging.getLogger("octavo.access")
_PROTECTED = ("/v1/", "/tokenize", "/detokenize", "/reset_prefix_cache")
_QUIET = (  # asked every few seconds
    "/health", "/health/live", "/health/ready", "/health/startup", "/ping", "/metrics", "/status",
)  # fmt: skip
_OPEN = (*_QUIET, "/version", "/load", "/drain")  # answered before there is a model
_CLIENT_GONE = 499  # nginx's code for a client that closed first
_PREFLIGHT_SECONDS = 600
_MAX_LOGGED_PATH = 256  # characters


def middlewares(service: Service) -> list[Middleware]:
    """All of them; what is switched off is left out."""
    config = service.config
    chain = [_observe(service), _errors]
    if config.allowed_origins:
        chain.append(_preflight(config))
    chain += [_api_keys(service), _wait_for_model(service)]
    return [web.middleware(middleware) for middleware in chain]


def engine_call(handler: Handler) -> Handler:
    """Mark a handler that gives the engine work; the drain waits for it.

    Refused before its body is read: while draining, and while the queue is full.
    """

    async def counted(request: web.Request) -> web.StreamResponse:
        admission = request.app[SERVICE].admission
        admission.check_open()
        admission.check_queue(num_requests=1, num_tokens=1)
        admission.num_calls += 1
        try:
            return await handler(request)
        finally:
            admission.num_calls -= 1

    return counted


def _observe(service: Service) -> Middleware:
    """Request id, arrival time; afterwards HTTP metrics and one line in the access log."""

    async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.perf_counter()
        request[ARRIVAL] = started
        service.connections.begin(request.transport)
        request[REQUEST_ID] = clean_id(request.headers.get("X-Request-Id")) or new_id()
        status = _CLIENT_GONE
        try:
            response = await handler(request)
            status = response.status
            return response
        finally:
            seconds = time.perf_counter() - started
            service.connections.end(request.transport)
            resource = request.match_info.route.resource
            route = resource.canonical if resource is not None else "none"
            service.metrics.http_request(route, request.method, status, seconds)
            if service.config.access_log:
                _log_access(request, route, status, seconds)

    return observe


def _log_access(request: web.Request, route: str, status: int, seconds: float) -> None:
    path = _path_for_log(request)
    fields = {
        "client": request.remote,
        "method": request.method,
        "path": path,
        "status": status,
        "seconds": round(seconds, 4),
        "request_id": request[REQUEST_ID],
    }
    line = '%s "%s %s" %d %.1f ms %s'
    values = (request.remote, request.method, path, status, seconds * 1000, request[REQUEST_ID])
    level = logging.DEBUG if route.endswith(_QUIET) else logging.INFO
    _access.log(level, line, *values, extra={"fields": fields})


def _path_for_log(request: web.Request) -> str:
    """As it came, without the query; whatever could end a line or a quotation is %-encoded, and a long one is cut."""
    path = quote(request.rel_url.raw_path, safe="/%:@!$&'()*+,;=", errors="surrogateescape")
    return path if len(path) <= _MAX_LOGGED_PATH else path[:_MAX_LOGGED_PATH] + "..."


async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The last resort: whatever goes wrong is answered in OpenAI's form."""
    try:
        return await handler(request)
    except ConnectionResetError:
        raise
    except Exception as error:  # noqa: BLE001  a client always gets an answer it can parse
        return error_response(error)


def _preflight(config: ServerConfig) -> Middleware:
    """Answers CORS preflight calls; `cors_headers` marks the other answers."""

    async def preflight(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_METHOD)
        if request.method != hdrs.METH_OPTIONS or asked is None or hdrs.ORIGIN not in request.headers:
            return await handler(request)
        headers = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "")
        methods = asked if "*" in config.allowed_methods else ", ".join(config.allowed_methods)
        allowed = headers if "*" in config.allowed_headers else ", ".join(config.allowed_headers)
        response = web.Response()
        response.headers[hdrs.ACCESS_CONTROL_ALLOW_METHODS] = methods
        if allowed:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = allowed
        response.headers[hdrs.ACCESS_CONTROL_MAX_AGE] = str(_PREFLIGHT_SECONDS)
        return response

    return preflight


async def response_headers(request: web.Request, response: web.StreamResponse) -> None:
    """on_response_prepare: CORS and the request id, on streams as well."""
    config = request.app[SERVICE].config
    response.headers[hdrs.SERVER] = "octavo"
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is not None and ("*" in config.allowed_origins or origin in config.allowed_origins):
        everyone = "*" in config.allowed_origins and not config.allow_credentials
        response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = "*" if everyone else origin
        if not everyone:
            response.headers[hdrs.VARY] = "Origin"
        if config.allow_credentials:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_CREDENTIALS] = "true"
    if REQUEST_ID in request and (config.enable_request_id_headers or "X-Request-Id" in request.headers):
        response.headers["X-Request-Id"] = request[REQUEST_ID]
    if request.app[SERVICE].drain.draining:
        response.headers[hdrs.CONNECTION] = "close"
        response.force_close()


def _api_keys(service: Service) -> Middleware:
    """`Authorization: Bearer KEY` under the API's paths, as long as there are keys."""
    root = service.config.root_path.rstrip("/")
    protected = _PROTECTED + tuple(root + prefix for prefix in _PROTECTED)

    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource  # what will answer, however the path was written
        path = request.path if resource is None else resource.canonical
        if (
            request.method != hdrs.METH_OPTIONS
            and path.startswith(protected)
            and service.keys.refuse(request.headers.get(hdrs.AUTHORIZATION, ""))
        ):
            raise UnauthorizedError("A valid API key is needed; send the header Authorization: Bearer KEY.")
        return await handler(request)

    return check


def _wait_for_model(service: Service) -> Middleware:
    """503 before the model is ready, for everything but probes and the like."""
    root = service.config.root_path.rstrip("/")
    open_paths = {*_OPEN, *(root + path for path in _OPEN)}

    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if service.ready is None:
            resource = request.match_info.route.resource
            if resource is None or resource.canonical not in open_paths:
                if service.engine.dead is not None:
                    raise EngineDeadError(service.engine.dead.message)
                raise ServiceUnavailableError("The model is still loading; GET /status tells how far it is.")
        return await handler(request)

    return check
