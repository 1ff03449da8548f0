"""Things made once: a folder is made anew only when the hash of what it is made from changes."""

import hashlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path


def key_of(parts: Iterable[str | bytes | Path]) -> str:
    """Hash of texts, and of files and folders by their content (what is ignored by git for being built is skipped)."""
    digest = hashlib.sha256()
    for part in parts:
        for piece in _pieces(part):
            digest.update(len(piece).to_bytes(8, "big"))
            digest.update(piece)
    return digest.hexdigest()[:16]


def make_once(folder: Path, key: str, make: Callable[[Path], None]) -> Path:
    """`folder` as `make` leaves it; it is there already when the key beside it is equal. The key is written last."""
    mark = folder.with_name(f"{folder.name}.key")
    if folder.exists() and mark.exists() and mark.read_text() == key:
        return folder
    mark.unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    make(folder)
    mark.write_text(key)
    return folder


def _pieces(part: str | bytes | Path) -> Iterable[bytes]:
    if isinstance(part, bytes):
        yield part
    elif isinstance(part, str):
        yield part.encode()
    elif part.is_dir():
        for path in sorted(part.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".so", ".pyc"}:
                yield str(path.relative_to(part)).encode()
                yield path.read_bytes()
    else:
        yield part.read_bytes()
