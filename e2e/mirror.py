"""A Hugging Face hub on this machine: serves folders as model repositories, and misbehaves when it is told to.

    python e2e/mirror.py ROOT --host ADDRESS --port 8099

ROOT holds `ORG/NAME/BRANCH/` folders of model files. HF_ENDPOINT or `spec.model.endpoint` points here. A branch's commit
is a hash of its files, so a changed file is a new commit. `POST /_mirror/ORG/NAME` with a JSON object of `Behaviour`
changes what one repository does, `DELETE` mends it; `GET /_mirror` says what was asked for.
"""

import argparse
import asyncio
import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import hdrs, web

DEFAULT_BRANCH = "main"
LFS_SUFFIXES = (".safetensors", ".gguf", ".bin")
LFS_SIZE = 1 << 20  # bytes: larger files of any name are kept in LFS too
CHUNK = 1 << 16
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Behaviour:
    """What one repository does other than serve its files. The default is a hub that is well."""

    status: int = 0  # answer this instead: 401, 403, 404, 429, 500 ...
    code: str = ""  # as X-Error-Code: GatedRepo, RepoNotFound, RevisionNotFound ...
    retry_after: str = ""  # as Retry-After
    times: int = -1  # how many answers `status` is for; -1: all
    only: str = ""  # "api" or "files": where `status` is answered; else everywhere
    token: str = ""  # gated: only requests with this bearer token are served
    delay_seconds: float = 0  # before every answer
    bytes_per_second: int = 0  # of file bodies; 0: as fast as it goes
    truncate: Mapping[str, int] = field(default_factory=dict)  # path -> bytes: the file really is that short
    cut: Mapping[str, int] = field(default_factory=dict)  # path -> offset behind which the connection breaks
    garble: tuple[str, ...] = ()  # paths whose last byte is wrong, while their hash is that of the right file
    branches: Mapping[str, str] = field(default_factory=dict)  # branch -> folder that it points to instead


@dataclass(frozen=True)
class StoredFile:
    """A file of a revision. `sha256` and `git_hash` are hex, of the content as it should be."""

    path: str
    place: Path
    size: int
    sha256: str
    git_hash: str

    @property
    def in_lfs(self) -> bool:
        return self.path.endswith(LFS_SUFFIXES) or self.size > LFS_SIZE

    @property
    def etag(self) -> str:
        return self.sha256 if self.in_lfs else self.git_hash


@dataclass(frozen=True)
class Snapshot:
    """A commit."""

    commit: str
    files: Mapping[str, StoredFile]


class Repositories:
    """The folders below a root; hashes are kept while size and time of a file stay the same."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._hashes: dict[tuple[Path, int, int, int], tuple[str, str]] = {}

    def exists(self, name: str) -> bool:
        """`name`: ORG/NAME."""
        return (self._root / name).is_dir() and ".." not in name.split("/")

    def snapshot(self, name: str, revision: str, behaviour: Behaviour) -> Snapshot | None:
        """Of a branch or a commit; None when there is no such revision."""
        folders = sorted(path.name for path in (self._root / name).iterdir() if path.is_dir())
        if _COMMIT.fullmatch(revision):
            for folder in folders:
                snapshot = self._read(self._root / name / folder, behaviour)
                if snapshot.commit == revision:
                    return snapshot
            return None
        folder = behaviour.branches.get(revision, revision)
        return self._read(self._root / name / folder, behaviour) if folder in folders else None

    def _read(self, folder: Path, behaviour: Behaviour) -> Snapshot:
        files = {}
        for place in sorted(path for path in folder.rglob("*") if path.is_file()):
            path = place.relative_to(folder).as_posix()
            size = min(place.stat().st_size, behaviour.truncate.get(path, 1 << 62))
            files[path] = StoredFile(path, place, size, *self._hash(place, size))
        listing = "".join(f"{file.sha256}  {file.path}\n" for file in files.values())
        return Snapshot(hashlib.sha1(listing.encode(), usedforsecurity=False).hexdigest(), files)

    def _hash(self, place: Path, size: int) -> tuple[str, str]:
        stat = place.stat()
        key = (place, size, stat.st_size, stat.st_mtime_ns)
        if key not in self._hashes:
            self._hashes[key] = _hash_file(place, size)
        return self._hashes[key]


class Mirror:
    """The hub's handlers. `behaviours`: by ORG/NAME; `requests`: how often each method and path was asked for."""

    def __init__(self, root: Path) -> None:
        self._repositories = Repositories(root)
        self.behaviours: dict[str, Behaviour] = {}
        self.requests: Counter[str] = Counter()

    def app(self) -> web.Application:
        """Everything under the hub's own paths, and the controls."""
        app = web.Application()
        app.router.add_get("/_mirror", self._report)
        app.router.add_post("/_mirror/{org}/{name}", self._change)
        app.router.add_delete("/_mirror/{org}/{name}", self._mend)
        app.router.add_get("/api/models/{org}/{name}", self._info)
        app.router.add_get("/api/models/{org}/{name}/revision/{revision}", self._info)
        app.router.add_get("/api/models/{org}/{name}/tree/{revision}", self._tree)
        app.router.add_get("/{org}/{name}/resolve/{revision}/{path:.+}", self._file)
        return app

    def behave(self, name: str, **fields: Any) -> None:
        """Change what ORG/NAME does; fields of `Behaviour`, the others stay. Raises TypeError for an unknown one."""
        self.behaviours[name] = replace(self.behaviours.get(name, Behaviour()), **fields)

    async def _report(self, _: web.Request) -> web.Response:
        return web.json_response({"requests": dict(self.requests)})

    async def _change(self, request: web.Request) -> web.Response:
        try:
            self.behave(_name(request), **await request.json())
        except (TypeError, ValueError) as error:
            raise web.HTTPBadRequest(text=f"not a behaviour: {error}\n") from error
        return web.json_response({})

    async def _mend(self, request: web.Request) -> web.Response:
        self.behaviours.pop(_name(request), None)
        return web.json_response({})

    async def _info(self, request: web.Request) -> web.Response:
        snapshot = await self._snapshot(request, "api")
        siblings = [_sibling(file) for file in snapshot.files.values()]
        name = _name(request)
        return web.json_response(
            {"id": name, "modelId": name, "sha": snapshot.commit, "private": False, "siblings": siblings}
        )

    async def _tree(self, request: web.Request) -> web.Response:
        snapshot = await self._snapshot(request, "api")
        return web.json_response([_tree_entry(file) for file in snapshot.files.values()])

    async def _file(self, request: web.Request) -> web.StreamResponse:
        snapshot = await self._snapshot(request, "files")
        path = request.match_info["path"]
        file = snapshot.files.get(path)
        if file is None:
            raise _error(404, "EntryNotFound", {"X-Repo-Commit": snapshot.commit})
        return await _send(request, file, snapshot.commit, self._behaviour(request))

    def _behaviour(self, request: web.Request) -> Behaviour:
        return self.behaviours.get(_name(request), Behaviour())

    async def _snapshot(self, request: web.Request, part: str) -> Snapshot:
        """The revision that is asked for. Raises what the hub would answer instead."""
        self.requests[f"{request.method} {request.path}"] += 1
        name, behaviour = _name(request), self._behaviour(request)
        await asyncio.sleep(behaviour.delay_seconds)
        self._refuse(request, part)
        if not self._repositories.exists(name):
            # without a token the hub does not tell a missing repository from a private one
            raise _error(404 if hdrs.AUTHORIZATION in request.headers else 401, "RepoNotFound")
        revision = request.match_info.get("revision", DEFAULT_BRANCH)
        snapshot = await asyncio.to_thread(self._repositories.snapshot, name, revision, behaviour)
        if snapshot is None:
            raise _error(404, "RevisionNotFound")
        return snapshot

    def _refuse(self, request: web.Request, part: str) -> None:
        name, behaviour = _name(request), self._behaviour(request)
        if behaviour.status and behaviour.only in ("", part) and behaviour.times != 0:
            if behaviour.times > 0:
                self.behave(name, times=behaviour.times - 1)
            headers = {"Retry-After": behaviour.retry_after} if behaviour.retry_after else {}
            raise _error(behaviour.status, behaviour.code, headers)
        if behaviour.token:
            given = request.headers.get(hdrs.AUTHORIZATION)
            if given != f"Bearer {behaviour.token}":
                raise _error(401 if given is None else 403, "GatedRepo")


def _name(request: web.Request) -> str:
    return f"{request.match_info['org']}/{request.match_info['name']}"


def _error(status: int, code: str, headers: Mapping[str, str] | None = None) -> web.HTTPException:
    """As the hub says it: the status, and in a header what it means."""
    kinds: dict[int, Callable[..., web.HTTPException]] = {
        401: web.HTTPUnauthorized,
        403: web.HTTPForbidden,
        404: web.HTTPNotFound,
        429: web.HTTPTooManyRequests,
        503: web.HTTPServiceUnavailable,
    }
    named = {"X-Error-Code": code} if code else {}
    return kinds.get(status, web.HTTPInternalServerError)(
        headers={**named, **(headers or {})}, text=json.dumps({"error": code or str(status)})
    )


def _sibling(file: StoredFile) -> dict[str, Any]:
    entry: dict[str, Any] = {"rfilename": file.path, "size": file.size, "blobId": file.git_hash}
    if file.in_lfs:
        entry["lfs"] = {"sha256": file.sha256, "size": file.size, "pointerSize": 135}
    return entry


def _tree_entry(file: StoredFile) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": file.path, "size": file.size, "oid": file.git_hash}
    if file.in_lfs:
        entry["lfs"] = {"oid": file.sha256, "size": file.size, "pointerSize": 135}
    return entry


async def _send(request: web.Request, file: StoredFile, commit: str, behaviour: Behaviour) -> web.StreamResponse:
    start, stop, status = _range(request, file.size)
    headers = {"ETag": f'"{file.etag}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
    if file.in_lfs:
        headers |= {"X-Linked-Etag": f'"{file.etag}"', "X-Linked-Size": str(file.size)}
    if status == 416:
        return web.Response(status=416, headers={**headers, "Content-Range": f"bytes */{file.size}"})
    if status == 206:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{file.size}"
    response = web.StreamResponse(status=status, headers=headers)
    response.content_length = stop - start
    response.content_type = "application/octet-stream"
    await response.prepare(request)
    if request.method == hdrs.METH_HEAD:
        return response
    end = min(stop, behaviour.cut.get(file.path, stop))
    async for chunk in _chunks(file, start, end, behaviour):
        if behaviour.bytes_per_second:
            await asyncio.sleep(len(chunk) / behaviour.bytes_per_second)
        await response.write(chunk)
    if end < stop and request.transport is not None:
        request.transport.close()
    return response


async def _chunks(file: StoredFile, start: int, stop: int, behaviour: Behaviour) -> AsyncIterator[bytes]:
    size = min(CHUNK, behaviour.bytes_per_second // 10 + 1) if behaviour.bytes_per_second else CHUNK
    with file.place.open("rb") as content:
        content.seek(start)
        while start < stop:
            chunk = content.read(min(size, stop - start))
            start += len(chunk)
            if file.path in behaviour.garble and start == file.size:
                chunk = chunk[:-1] + bytes([chunk[-1] ^ 0xFF])
            yield chunk


def _range(request: web.Request, size: int) -> tuple[int, int, int]:
    """First byte, the one behind the last, and the status."""
    try:
        wanted = request.http_range
    except ValueError:
        return 0, size, 416
    if wanted.start is None and wanted.stop is None:
        return 0, size, 200
    start = max(0, size + wanted.start) if wanted.start < 0 else wanted.start
    stop = size if wanted.stop is None else min(wanted.stop, size)
    return (start, stop, 206) if start < stop else (0, size, 416)


def _hash_file(place: Path, size: int) -> tuple[str, str]:
    """sha256, and git's hash of a blob; both of the first `size` bytes."""
    sha256, git = hashlib.sha256(), hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    with place.open("rb") as content:
        while size > 0 and (chunk := content.read(min(1 << 20, size))):
            size -= len(chunk)
            sha256.update(chunk)
            git.update(chunk)
    return sha256.hexdigest(), git.hexdigest()


def main() -> None:
    """Serve until a signal comes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8099)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    web.run_app(Mirror(arguments.root).app(), host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
