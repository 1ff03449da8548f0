"""`octavo download MODEL --dest DIR`: a model of a hub or URL into a folder that `octavo serve DIR` needs no network for.

The folder appears when it is whole; what an ended run had fetched is used by the next. `--status-port` answers GET /status.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from octavo_runtime.cli.flags import Parser, add_fields, settings_of
from octavo_runtime.cli.verb import Arguments
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.hub import is_here
from octavo_runtime.process_state import cause_of, installed_version
from octavo_runtime.settings import Settings
from octavo_runtime.start_state import StartState

logger = logging.getLogger(__name__)

_FIELDS = (
    "revision", "allow_files", "ignore_files", "digest", "startup_timeout", "log_level", "log_format", "termination_log",
)  # fmt: skip
TERMINATED_STATUS = 143
"""128 + SIGTERM: not 0, or a Job would count half a model as done."""


def add_arguments(parser: Parser) -> None:
    """What is fetched, and where to."""
    parser.usage = "octavo download MODEL --dest DIR [flags]"
    parser.add_argument(
        "--dest", type=Path, metavar="DIR", help="the folder to make; it is left alone when it is whole"
    )
    parser.add_argument(
        "--status-port", metavar="PORT", help="answer GET /status there while it runs (default: nowhere)"
    )
    add_fields(parser, _FIELDS)


def run(arguments: Arguments) -> int:
    """Fetch; the exit status: 0 when the folder is whole."""
    parsed = arguments.parsed
    settings = settings_of(parsed)
    arguments.begin_logging(settings)
    if parsed.dest is None:
        raise StartError(StartCause.INVALID_SETTINGS, "--dest is missing: name the folder that the model shall be in.")
    port = _port(parsed.status_port)
    name = settings.model.model
    if is_here(name):
        message = f"{name} is on this machine already; octavo serve takes it as it is."
        raise StartError(StartCause.INVALID_SETTINGS, message)
    try:
        return asyncio.run(_download(settings, parsed.dest.expanduser().absolute(), port))
    except OSError as error:
        raise StartError(*cause_of(error, "The download")) from error


async def _download(settings: Settings, folder: Path, port: int | None) -> int:
    from octavo_runtime.hub_download import download_to

    state = StartState(settings.model.model)
    budget = settings.server.startup_timeout
    deadline = asyncio.get_running_loop().time() + budget if budget else None
    async with _status_server(state, port):
        work = asyncio.create_task(download_to(settings.model.model, folder, settings.fetch_options(), state, deadline))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, work.cancel)
        try:
            await asyncio.wait_for(work, budget or None)
        except asyncio.CancelledError:
            logger.info("stopped at: %s; the next run goes on from there", state.describe())
            return TERMINATED_STATUS
        except TimeoutError as error:
            raise state.too_late(budget) from error
    return 0


@asynccontextmanager
async def _status_server(state: StartState, port: int | None) -> AsyncIterator[None]:
    """GET /status and /health/live on all interfaces."""
    if port is None:
        yield
        return
    from aiohttp import web

    from octavo_runtime.server.reply import json_response
    from octavo_runtime.server.status import start_status

    async def status(_: web.Request) -> web.Response:
        return json_response(start_status(state, installed_version()))

    async def live(_: web.Request) -> web.Response:
        return json_response({"status": "ok"})

    app = web.Application()
    app.add_routes([web.get("/status", status), web.get("/health/live", live)])
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
    except OSError as error:
        await runner.cleanup()
        message = f"--status-port {port} cannot be listened on ({error.strerror}); choose another port."
        raise StartError(StartCause.ADDRESS_IN_USE, message) from error
    try:
        yield
    finally:
        await runner.cleanup()


def _port(written: str | None) -> int | None:
    if written is None:
        return None
    with contextlib.suppress(ValueError):
        if 1 <= int(written) <= 65535:
            return int(written)
    raise StartError(StartCause.INVALID_SETTINGS, f"--status-port must be between 1 and 65535, got {written[:100]!r}.")
