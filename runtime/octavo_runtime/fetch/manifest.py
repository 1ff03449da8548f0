"""Which files of a model are wanted, and the one checksum over all of them.

The digest is the SHA-256 of the sorted lines `<sha256 of the file>  <path>`, each with its newline: what
`sha256sum FILES | sort | sha256sum` prints.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from octavo_runtime.errors import StartCause, StartError

DEFAULT_PATTERNS = ("*.json", "*.safetensors", "*.jinja", "tokenizer.model", "*.txt")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_READ_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class FileChoice:
    """Globs over paths; `*` matches `/` too, as on the hub. No `allow`: what Octavo can read."""

    allow: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def wants(self, path: str) -> bool:
        """Hidden files are never wanted: they are the marker's and the hub's own."""
        if any(part.startswith(".") for part in path.split("/")):
            return False
        allowed = any(_matches(path, pattern) for pattern in self.allow or DEFAULT_PATTERNS)
        return allowed and not any(_matches(path, pattern) for pattern in self.ignore)


def _matches(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern + "*" if pattern.endswith("/") else pattern)


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """What is fetched of a model, and where it is kept."""

    revision: str | None = None  # branch, tag or commit; None: the hub's main
    download_dir: Path | None = None  # instead of the hub's cache
    choice: FileChoice = FileChoice()
    digest: str | None = None  # sha256:<64 hex> of the wanted files


@dataclass(frozen=True, slots=True)
class FileSum:
    """One file of a model as it lies on disk."""

    path: str
    size: int
    sha256: str


def is_digest(text: str) -> bool:
    """Whether it is written as a digest must be."""
    return _DIGEST.fullmatch(text) is not None


def manifest_digest(files: Iterable[FileSum]) -> str:
    """`sha256:<64 hex>` of the files."""
    lines = sorted(f"{file.sha256}  {file.path}\n".encode() for file in files)
    return f"sha256:{hashlib.sha256(b''.join(lines)).hexdigest()}"


def check_digest(name: str, files: Iterable[FileSum], wanted: str | None) -> None:
    """Raises StartError(DIGEST_MISMATCH) when a digest is wanted and it is not that of the files."""
    if wanted is None:
        return
    found = manifest_digest(files)
    if found != wanted:
        raise StartError(
            StartCause.DIGEST_MISMATCH,
            f"The files of {name} have the digest {found}, --digest wants {wanted}; check the revision and the choice of "
            "files, or fetch the model again.",
        )


def sum_file(root: Path, file: Path) -> FileSum:
    """Reads all of it."""
    total = hashlib.sha256()
    size = 0
    with file.open("rb") as content:
        while data := content.read(_READ_BYTES):
            total.update(data)
            size += len(data)
    return FileSum(file.relative_to(root).as_posix(), size, total.hexdigest())


def sum_folder(folder: Path, choice: FileChoice) -> list[FileSum]:
    """The wanted files of a folder. Reads all of them: minutes for a large model."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return [sum_file(folder, file) for file in files if choice.wants(file.relative_to(folder).as_posix())]
