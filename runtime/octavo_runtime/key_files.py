"""Keys from flags and files, and the watch that brings a changed file in without a restart.

A mounted Secret changes by a link that is swapped, so inode, size and time of the file behind it are compared. A file that
is gone, empty or wrong keeps the keys that were there: an accident must neither open the door nor shut everybody out.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.server.keys import Keys, KeySet
from octavo_runtime.settings_groups import ServerSettings

logger = logging.getLogger(__name__)

POLL_SECONDS = 2.0
Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class KeyFile:
    """One file and the flag that named it."""

    flag: str
    path: Path

    def read(self) -> KeySet:
        """Raises ValueError with the end of a sentence. A file of comments alone is a set that opens to nobody."""
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"cannot be read ({error})") from error
        if not any(line.strip() for line in lines):
            raise ValueError("holds no key")
        return KeySet.parse(lines)

    def stamp(self) -> Stamp | None:
        """Changes with the content; None while the file is gone."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns


class KeyWatch:
    """The server's keys, from its settings, and their files."""

    def __init__(self, settings: ServerSettings) -> None:
        """Raises StartError(INVALID_SETTINGS) when a file cannot be used: a server never starts more open than asked."""
        self.keys = Keys()
        self._given = _parse_flag(settings.api_key)
        self._files: list[tuple[KeyFile, Callable[[KeySet], None]]] = []
        if settings.api_key:
            self.keys.api = self._given
        if settings.api_key_file is not None:
            self._files.append((KeyFile("--api-key-file", settings.api_key_file), self._set_api))
        if settings.admin_key_file is not None:
            self._files.append((KeyFile("--admin-key-file", settings.admin_key_file), self._set_admin))
        self._stamps = [file.stamp() for file, _ in self._files]
        for file, use in self._files:
            try:
                use(file.read())
            except ValueError as error:
                raise StartError(StartCause.INVALID_SETTINGS, f"{file.flag} {file.path} {error}.") from error

    async def run(self) -> None:
        """For ever: look every `POLL_SECONDS`."""
        while self._files:
            await asyncio.sleep(POLL_SECONDS)
            self.look()

    def look(self) -> None:
        """Read again what has changed."""
        for place, (file, use) in enumerate(self._files):
            stamp = file.stamp()
            if stamp == self._stamps[place]:
                continue
            self._stamps[place] = stamp
            try:
                keys = file.read()
            except ValueError as error:
                logger.warning("%s %s %s: the keys from before stay", file.flag, file.path, error)
                continue
            use(keys)
            logger.info("%s %s has changed: %d keys now", file.flag, file.path, len(keys.digests))

    def _set_api(self, keys: KeySet) -> None:
        self.keys.api = self._given | keys

    def _set_admin(self, keys: KeySet) -> None:
        self.keys.admin = keys


def _parse_flag(given: tuple[str, ...]) -> KeySet:
    try:
        return KeySet.parse(given)
    except ValueError as error:
        raise StartError(StartCause.INVALID_SETTINGS, f"--api-key: {error}.") from error
