"""The server's socket and what it needs before there is a model: TLS, the server's configuration, the process's metrics."""

import ssl
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.hub import served_name
from octavo_runtime.process_state import installed_version
from octavo_runtime.server.config import ServerConfig
from octavo_runtime.settings import Settings


async def listen(runner: web.AppRunner, settings: Settings, ssl_context: ssl.SSLContext | None) -> web.TCPSite:
    """Bind and accept. Raises StartError(ADDRESS_IN_USE)."""
    server = settings.server
    site = web.TCPSite(runner, server.host, server.port, ssl_context=ssl_context, backlog=1024)
    try:
        await site.start()
    except OSError as error:
        message = (
            f"--host {server.host} --port {server.port} cannot be listened on ({error.strerror}); "
            "choose another host or port."
        )
        raise StartError(StartCause.ADDRESS_IN_USE, message) from error
    return site


def server_config(settings: Settings) -> ServerConfig:
    """The server's part of the settings."""
    server = settings.server
    return ServerConfig(
        served_model_names=settings.served_names or (served_name(settings.model.model),),
        version=installed_version(),
        allowed_origins=server.allowed_origins,
        allowed_methods=server.allowed_methods,
        allowed_headers=server.allowed_headers,
        allow_credentials=server.allow_credentials,
        root_path=server.root_path,
        max_body_bytes=server.max_body_bytes,
        max_num_queued_reqs=server.max_num_queued_reqs,
        max_num_queued_tokens=server.max_num_queued_tokens,
        max_logprobs=server.max_logprobs,
        stream_interval=server.stream_interval,
        enable_request_id_headers=server.enable_request_id_headers,
        enable_prompt_tokens_details=server.enable_prompt_tokens_details,
        access_log=not settings.log.disable_access_log,
        log_prompts=settings.log.log_prompts,
        liveness_timeout=server.engine_hang_timeout,
        keep_alive=server.keep_alive,
    )


def make_ssl_context(settings: Settings) -> ssl.SSLContext | None:
    """From the TLS files; None without a certificate. Raises StartError when they cannot be used."""
    server = settings.server
    if server.ssl_certfile is None:
        if server.ssl_keyfile is not None:
            raise StartError(StartCause.INVALID_SETTINGS, "--ssl-keyfile needs --ssl-certfile beside it.")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(server.ssl_certfile, server.ssl_keyfile)
        if server.ssl_ca_certs is not None:
            context.load_verify_locations(server.ssl_ca_certs)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        files: list[Path | None] = [server.ssl_certfile, server.ssl_keyfile, server.ssl_ca_certs]
        named = ", ".join(str(file) for file in files if file)
        raise StartError(StartCause.INVALID_SETTINGS, f"The TLS files cannot be used ({named}): {error}.") from error
    return context


def process_registry() -> CollectorRegistry:
    """A registry with the `process_*` and `python_*` metrics of this process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
