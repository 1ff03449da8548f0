"""`FileFetch`: one remote file into a folder, resumed where an earlier run stopped, checked before it gets its name.

While it comes it is called `<path>.<version>.incomplete`; size and SHA-256 decide whether it becomes `<path>`. Writing and
hashing happen on threads, so that a slow disk does not stop the event loop.
"""

import asyncio
import hashlib
import re
from http import HTTPStatus
from pathlib import Path

import aiohttp

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.listing import RemoteFile
from octavo_runtime.fetch.manifest import FileSum, sum_file
from octavo_runtime.fetch.patience import Patience, TryLaterError
from octavo_runtime.fetch.store import Destination
from octavo_runtime.fetch.web import Web
from octavo_runtime.start_state import StartState

_CHUNK = 4 << 20
_START = re.compile(r"bytes (\d+)-")
_DAMAGED_TRIES = 2


class FileFetch:
    """One file on its way."""

    def __init__(self, web: Web, file: RemoteFile, destination: Destination, state: StartState) -> None:
        self._web = web
        self._file = file
        self._destination = destination
        self._state = state
        self._damaged = 0
        self._counted = 0  # bytes of this file in state.done_bytes

    async def run(self, patience: Patience) -> FileSum:
        """The file, complete and checked. Raises StartError, or OSError of the disk."""
        here = await self._already_here()
        if here is not None:
            return here
        target = self._destination.partial / self._file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        path = target.with_name(f"{target.name}.{self._file.version[:12]}.incomplete")
        partial = PartialFile(path)
        try:
            await asyncio.to_thread(partial.take_in)
            found = await patience.run(lambda: self._attempt(partial, patience))
        finally:
            partial.close()
        path.replace(target)
        return found

    async def _already_here(self) -> FileSum | None:
        """In the folder itself (another tool put it there), or from an earlier run."""
        for folder in (self._destination.folder, self._destination.partial):
            if is_there(folder, self._file):
                found = await asyncio.to_thread(sum_file, folder, folder / self._file.path)
                if self._is_right(found):
                    self._count(found.size)
                    return found
        return None

    async def _attempt(self, partial: "PartialFile", patience: Patience) -> FileSum:
        self._count(partial.size)
        if self._file.size is None or partial.size < self._file.size:
            await self._receive(partial, patience)
        found = FileSum(self._file.path, partial.size, partial.sha256)
        if not self._is_right(found):
            raise self._wrong(partial, found)
        return found

    async def _receive(self, partial: "PartialFile", patience: Patience) -> None:
        start = partial.size
        headers = {"Range": f"bytes={start}-"} if start else {}
        async with self._web.get(self._file.url, hub=self._file.hub, headers=headers) as response:
            if response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return  # nothing is left; the check decides
            match = _START.match(response.headers.get("Content-Range", ""))
            if response.status != HTTPStatus.PARTIAL_CONTENT or match is None or int(match[1]) != start:
                partial.restart()  # the server sends it from the beginning
                self._count(0)
            await self._write(partial, response, patience)

    async def _write(self, partial: "PartialFile", response: aiohttp.ClientResponse, patience: Patience) -> None:
        buffer = bytearray()
        try:
            async for chunk in response.content.iter_any():
                buffer += chunk
                if len(buffer) >= _CHUNK:
                    data, buffer = bytes(buffer), bytearray()
                    await self._append(partial, data, patience)
        except aiohttp.ClientError:  # what came before the connection broke counts too
            await self._append(partial, bytes(buffer), patience)
            raise
        await self._append(partial, bytes(buffer), patience)

    async def _append(self, partial: "PartialFile", data: bytes, patience: Patience) -> None:
        if data:
            await asyncio.to_thread(partial.append, data)
            self._count(partial.size)
            patience.progressed()

    def _count(self, size: int) -> None:
        """This file has `size` bytes here."""
        self._state.done_bytes += size - self._counted
        self._counted = size

    def _is_right(self, found: FileSum) -> bool:
        file = self._file
        return file.size in (None, found.size) and file.sha256 in (None, found.sha256)

    def _wrong(self, partial: "PartialFile", found: FileSum) -> Exception:
        """It ended in order and is not what was promised: once more, then it is the other side's fault."""
        file = self._file
        self._damaged += 1
        if file.size not in (None, found.size):
            what = f"came with {found.size} bytes instead of {file.size}"
        else:
            what = "came with another SHA-256 than the hub names"
        if file.size is None or found.size >= file.size:
            partial.restart()
        message = f"{file.path} {what}; it is damaged there, or this is not the hub's own answer: fetch it again later."
        if self._damaged < _DAMAGED_TRIES:
            return TryLaterError(StartCause.HUB_UNREACHABLE, message)
        return StartError(StartCause.MODEL_CORRUPT, message)


def is_there(folder: Path, file: RemoteFile) -> bool:
    """Whether the folder has it, by its size."""
    place = folder / file.path
    return place.is_file() and file.size in (None, place.stat().st_size)


class PartialFile:
    """A growing file and the SHA-256 of what is in it."""

    def __init__(self, path: Path) -> None:
        self.size = 0
        self._hash = hashlib.sha256()
        self._file = path.open("a+b")

    def take_in(self) -> None:
        """Go on where an earlier run stopped: read what is there."""
        self._file.seek(0)
        while data := self._file.read(_CHUNK):
            self._hash.update(data)
            self.size += len(data)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def append(self, data: bytes) -> None:
        """What is counted has left this process: a killed one loses nothing."""
        self._file.write(data)
        self._file.flush()
        self._hash.update(data)
        self.size += len(data)

    def restart(self) -> None:
        """Empty again."""
        self._file.truncate(0)
        self._hash = hashlib.sha256()
        self.size = 0

    def close(self) -> None:
        self._file.close()
