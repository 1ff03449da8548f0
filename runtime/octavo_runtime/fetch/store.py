"""`Destination`: the folder that a model is fetched into, so that nobody ever sees half of it.

Files come into `<folder>.partial-<host>`, which gets the folder's name when all are there; the marker `.octavo-complete`
inside says what they are. Several hosts may fetch into the same volume at once: the first one wins, the others find it done.
No file locks: shared volumes rarely have them right.
"""

import contextlib
import errno
import json
import os
import shutil
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from octavo_runtime.byte_size import size
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.manifest import FileChoice, FileSum, manifest_digest

MARKER = ".octavo-complete"
BEAT_SECONDS = 10.0
_OWNER = ".octavo-owner"
_ABANDONED_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Marker:
    """What a complete folder says of itself."""

    model: str
    revision: str | None  # the commit
    choice: FileChoice  # what was wanted of it
    files: tuple[FileSum, ...]


class Destination:
    """One folder, and this process's partial one beside it."""

    def __init__(self, folder: Path, host: str = "") -> None:
        self.folder = folder
        self._prefix = f"{folder.name}.partial-"
        self.partial = folder.with_name(self._prefix + (host or socket.gethostname()))

    def open(self) -> None:
        """Make the partial folder, or go on with this host's own, or with one whose host is gone."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        if _owner_lives(self.partial):
            self.partial = self.partial.with_name(f"{self.partial.name}-{os.getpid()}")
        if not self.partial.exists():
            self._adopt()
        self.partial.mkdir(exist_ok=True)
        (self.partial / _OWNER).write_text(_identity(os.getpid()))

    def beat(self) -> None:
        """Called every `BEAT_SECONDS` while files come: others see that this host lives."""
        with contextlib.suppress(OSError):
            os.utime(self.partial / _OWNER)

    def install(self, marker: Marker) -> None:
        """Everything is there and right: give it its name, and clear away what was left half done."""
        wanted = {self.partial / file.path for file in marker.files}
        for path in self.partial.rglob("*"):
            if path.is_file() and path not in wanted:
                path.unlink()
        _write_marker(self.partial / MARKER, marker)
        try:
            self.partial.rename(self.folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            if read_marker(self.folder) != marker or not is_whole(self.folder, marker):
                self._move_in(marker)
            shutil.rmtree(self.partial, ignore_errors=True)
        for other in self._abandoned():
            shutil.rmtree(other, ignore_errors=True)

    def _move_in(self, marker: Marker) -> None:
        """Into a folder that is there already, file by file; the marker last."""
        for path in [*(file.path for file in marker.files), MARKER]:
            target = self.folder / path
            if (self.partial / path).exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                (self.partial / path).replace(target)

    def _adopt(self) -> None:
        """A pod that was replaced has another host name than the one before: take over what that one had."""
        for other in self._abandoned():
            with contextlib.suppress(OSError):  # another host was first
                other.rename(self.partial)
                return

    def _abandoned(self) -> list[Path]:
        """Partial folders whose owner has not beaten for long, by the clock of the file system itself."""
        others = [
            path for path in self.folder.parent.glob(f"{self._prefix}*") if path not in (self.partial, self.folder)
        ]
        if not others:
            return []
        probe = self.folder.with_name(f".octavo-clock-{self.partial.name}")
        probe.touch()
        now = probe.stat().st_mtime
        probe.unlink()
        return [path for path in others if now - _last_beat(path) > _ABANDONED_SECONDS]


def read_marker(folder: Path) -> Marker | None:
    """The marker of a complete folder; None when it has none, or one that is not ours."""
    try:
        content: dict[str, Any] = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        files = tuple(FileSum(str(file["path"]), int(file["size"]), str(file["sha256"])) for file in content["files"])
        choice = FileChoice(tuple(content["allow"]), tuple(content["ignore"]))
        return Marker(str(content["model"]), content["revision"], choice, files)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_whole(folder: Path, marker: Marker) -> bool:
    """Whether the files that the marker names are there, by their sizes."""
    with contextlib.suppress(OSError):
        return all((folder / file.path).stat().st_size == file.size for file in marker.files)
    return False


def check_space(folder: Path, needed: int) -> None:
    """Raises StartError(DISK_FULL) when the disk has less than `needed` bytes left."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        message = (
            f"{size(needed)} are still to be fetched, but the disk of {folder} has {size(free)} left; make it larger."
        )
        raise StartError(StartCause.DISK_FULL, message)


def disk_error(error: OSError, folder: Path) -> StartError:
    """What an error of the disk means for a start."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StartError(StartCause.DISK_FULL, f"The disk of {folder} is full; make the volume larger.")
    reason = error.strerror or str(error)
    return StartError(StartCause.INVALID_SETTINGS, f"{folder} cannot be written ({reason}); name a folder that can.")


def _write_marker(path: Path, marker: Marker) -> None:
    content = {
        "model": marker.model,
        "revision": marker.revision,
        "allow": marker.choice.allow,
        "ignore": marker.choice.ignore,
        "digest": manifest_digest(marker.files),
        "files": [asdict(file) for file in marker.files],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _owner_lives(partial: Path) -> bool:
    """Whether another process of this host is at work on it."""
    try:
        owner = (partial / _OWNER).read_text()
        pid = int(owner.partition(" ")[0])
    except (OSError, ValueError):
        return False
    return pid != os.getpid() and owner == _identity(pid)


def _identity(pid: int) -> str:
    """The process and when it began (field 22 of /proc/PID/stat): a later one with the same number is another."""
    try:
        began = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
    return f"{pid} {began}"


def _last_beat(partial: Path) -> float:
    try:
        return (partial / _OWNER).stat().st_mtime
    except OSError:
        return partial.stat().st_mtime if partial.exists() else float("inf")
