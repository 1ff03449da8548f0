"""What there is to fetch: the files of one commit of a repository, or the one file behind a URL.

Asks the hub's API or the server; reads no file's content.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.manifest import FileChoice
from octavo_runtime.fetch.patience import TryLaterError
from octavo_runtime.fetch.web import Web

_COMMIT_LENGTH = 40


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """`version` names the content: as long as it is the same, a file can be resumed."""

    path: str
    url: str
    size: int | None
    sha256: str | None
    version: str
    hub: bool  # the hub's token goes with the request


@dataclass(frozen=True, slots=True)
class Listing:
    """`commit`: of a repository; a URL has none."""

    commit: str | None
    files: tuple[RemoteFile, ...]

    @property
    def total_bytes(self) -> int:
        """Of the files whose size is known."""
        return sum(file.size or 0 for file in self.files)


def is_commit(revision: str | None) -> bool:
    """Whether a revision is a whole commit id, which never changes its meaning."""
    return revision is not None and len(revision) == _COMMIT_LENGTH and not set(revision) - set("0123456789abcdef")


async def list_repository(web: Web, repository: str, revision: str | None, choice: FileChoice) -> Listing:
    """The wanted files. Raises StartError (not found, denied, nothing wanted) or TryLaterError."""
    asked = quote(revision or "main", safe="")
    try:
        facts = await web.get_json(f"/api/models/{repository}/revision/{asked}?blobs=true")
    except StartError as error:
        if error.cause is StartCause.MODEL_NOT_FOUND and revision is not None and await _exists(web, repository):
            raise web.revision_not_found() from error
        raise
    commit, siblings = _facts(repository, facts)
    found = [_remote_file(web, repository, commit, sibling) for sibling in siblings]
    files = tuple(file for file in found if choice.wants(file.path))
    if not files:
        raise _nothing_wanted(repository, (file.path for file in found))
    return Listing(commit, files)


async def list_url(web: Web, url: str) -> Listing:
    """The file behind the URL; its ETag, or size and date, is its version."""
    async with web.get(url, hub=False, headers={"Range": "bytes=0-0"}) as response:
        headers = response.headers
        whole = headers.get("Content-Range", "").rpartition("/")[2]
        if response.status != HTTPStatus.PARTIAL_CONTENT:
            whole = headers.get("Content-Length", "")
    size = int(whole) if whole.isdecimal() else None
    identity = headers.get("ETag") or f"{size} {headers.get('Last-Modified', '')}"
    version = hashlib.sha256(f"{url} {identity}".encode()).hexdigest()
    return Listing(None, (RemoteFile(url_file_name(url), url, size, None, version, hub=False),))


def url_file_name(url: str) -> str:
    """The last part of the path. Raises StartError when that is no .gguf file: nothing else is a model in one file."""
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    if not name.endswith(".gguf") or "/" in name:
        raise StartError(
            StartCause.MODEL_UNSUPPORTED, f"{url} does not end with the name of a .gguf file; a URL must name one."
        )
    return name


async def _exists(web: Web, repository: str) -> bool:
    """Whether the repository is there, for hubs that do not say what of the two was not found."""
    try:
        await web.get_json(f"/api/models/{repository}")
    except StartError:
        return False
    return True


def _facts(repository: str, facts: Any) -> tuple[str, list[dict[str, Any]]]:
    try:
        siblings = [dict(sibling) for sibling in facts["siblings"]]
        return str(facts["sha"]), [sibling for sibling in siblings if isinstance(sibling["rfilename"], str)]
    except (KeyError, TypeError, ValueError) as error:
        raise TryLaterError(
            StartCause.HUB_UNREACHABLE,
            f"The hub's answer about {repository} is not a list of files; check HF_ENDPOINT.",
        ) from error


def _remote_file(web: Web, repository: str, commit: str, sibling: dict[str, Any]) -> RemoteFile:
    path = sibling["rfilename"]
    if path.startswith("/") or ".." in path.split("/"):
        raise StartError(
            StartCause.MODEL_CORRUPT, f"{repository} holds a file with a path outside of it: {path[:100]!r}."
        )
    lfs = sibling.get("lfs") or {}
    size = sibling.get("size", lfs.get("size"))
    sha256 = lfs.get("sha256")
    return RemoteFile(
        path=path,
        url=f"{web.access.endpoint}/{repository}/resolve/{commit}/{quote(path)}",
        size=size if isinstance(size, int) else None,
        sha256=sha256 if isinstance(sha256, str) else None,
        version=commit,
        hub=True,
    )


def _nothing_wanted(repository: str, paths: Iterable[str]) -> StartError:
    gguf = sorted(path for path in paths if path.endswith(".gguf"))
    hint = f"name one of its .gguf files, such as {repository}/{gguf[0]}" if gguf else "check --allow-files"
    return StartError(StartCause.MODEL_NOT_FOUND, f"{repository} has none of the files that are wanted; {hint}.")
