"""Which files of a repository are fetched, and the digest over them that `spec.model.digest` pins.

The choice is the runtime's own (a contract test compares the patterns). Pure.
"""

import hashlib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

WANTED_FILES = ("*.json", "*.safetensors", "*.jinja", "tokenizer.model", "*.txt")
"""What is fetched of a repository when `spec.model.files.allow` is empty."""


def wanted(paths: Iterable[str], allow: Sequence[str], ignore: Sequence[str]) -> tuple[str, ...]:
    """The paths to fetch, in order of name. `allow` replaces WANTED_FILES; `*` also matches a slash.

    Hidden files are never fetched.
    """
    patterns = [_whole_folder(pattern) for pattern in (allow or WANTED_FILES)]
    refused = [_whole_folder(pattern) for pattern in ignore]
    return tuple(
        sorted(
            path
            for path in paths
            if not _is_hidden(path)
            and any(fnmatchcase(path, pattern) for pattern in patterns)
            and not any(fnmatchcase(path, pattern) for pattern in refused)
        )
    )


def manifest_digest(sha256_of: Iterable[tuple[str, str]]) -> str:
    """`sha256:<hex>` over the lines `<sha256 of the file>  <path>` and a newline each, sorted by their bytes.

    Given (path, hex) pairs. The same as `sha256sum FILES | LC_ALL=C sort | sha256sum` in the model's folder.
    """
    lines = sorted(f"{digest}  {path}\n".encode() for path, digest in sha256_of)
    return f"sha256:{hashlib.sha256(b''.join(lines)).hexdigest()}"


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def _whole_folder(pattern: str) -> str:
    return f"{pattern}*" if pattern.endswith("/") else pattern
