"""`fetch`: all files of a listing into a folder, several at once, then the digest, then the folder's name.

Reports to a `StartState`; whatever ends it early leaves what came for the next run.
"""

import asyncio
import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octavo_runtime.byte_size import size
from octavo_runtime.errors import StartError
from octavo_runtime.fetch.listing import Listing
from octavo_runtime.fetch.manifest import FileChoice, FileSum, check_digest
from octavo_runtime.fetch.patience import Patience
from octavo_runtime.fetch.store import BEAT_SECONDS, Destination, Marker, check_space, disk_error
from octavo_runtime.fetch.transfer import FileFetch
from octavo_runtime.fetch.web import Web
from octavo_runtime.start_state import Phase, StartState

logger = logging.getLogger(__name__)

_FILES_AT_ONCE = 4
_LOG_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Order:
    """`deadline`: on the monotonic clock; None when nobody set one."""

    model: str
    listing: Listing
    choice: FileChoice
    digest: str | None = None
    deadline: float | None = None


async def fetch(web: Web, order: Order, folder: Path, state: StartState) -> None:
    """Afterwards `folder` is complete. Raises StartError."""
    destination = Destination(folder)
    state.enter(Phase.DOWNLOADING)
    state.total_bytes = order.listing.total_bytes
    logger.info("fetching %d files of %s, %s", len(order.listing.files), order.model, size(state.total_bytes))
    helpers = [asyncio.create_task(log_progress(state)), asyncio.create_task(_beat(destination))]
    try:
        here = await asyncio.to_thread(_prepare, destination)
        check_space(folder, max(0, state.total_bytes - here))
        files = await _all_files(web, order, destination, state)
        await _check(order, files, destination)
        marker = Marker(order.model, order.listing.commit, order.choice, tuple(files))
        await asyncio.to_thread(destination.install, marker)
    except OSError as error:
        raise disk_error(error, folder) from error
    finally:
        await _cancel(helpers)
    logger.info("fetched %s into %s", order.model, folder)


async def _check(order: Order, files: list[FileSum], destination: Destination) -> None:
    """Files with a wrong digest are not kept: the next run would find the same ones."""
    try:
        check_digest(order.model, files, order.digest)
    except StartError:
        await asyncio.to_thread(shutil.rmtree, destination.partial, ignore_errors=True)
        raise


async def log_progress(state: StartState) -> None:
    """One line every `_LOG_SECONDS`: how far it is, how fast, and what is in the way."""
    before = state.done_bytes
    while True:
        await asyncio.sleep(_LOG_SECONDS)
        if state.problem is not None:
            logger.warning("waiting: %s", state.problem.message)
        else:
            logger.info("%s, %s/s", state.describe(), size(int(max(0, state.done_bytes - before) / _LOG_SECONDS)))
        before = state.done_bytes


async def _all_files(web: Web, order: Order, destination: Destination, state: StartState) -> list[FileSum]:
    gate = asyncio.Semaphore(_FILES_AT_ONCE)

    async def one(fetch_file: FileFetch) -> FileSum:
        async with gate:
            return await fetch_file.run(Patience(state, order.deadline))

    fetches = [FileFetch(web, file, destination, state) for file in order.listing.files]
    tasks = [asyncio.create_task(one(fetch_file)) for fetch_file in fetches]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await _cancel(tasks)


def _prepare(destination: Destination) -> int:
    """Bytes that an earlier run left."""
    destination.open()
    return sum(file.stat().st_size for file in destination.partial.rglob("*") if file.is_file())


async def _beat(destination: Destination) -> None:
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        await asyncio.to_thread(destination.beat)


async def _cancel(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
