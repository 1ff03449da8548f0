"""A hub on a real socket, with the troubles that real ones have: `hub` in tests of everything that fetches. And `forbid`."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from octavo_runtime.fetch.access import HubAccess

COMMIT = "c" * 40


@dataclass
class Trouble:
    """What happens to the next `times` calls of paths that end so."""

    ending: str
    status: int = 0  # 0: the connection breaks in the middle of the content
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)


class Hub(ThreadingHTTPServer):
    """`files` of one repository `org/tiny` at COMMIT; also plain files below /files/. `asked` is what came in."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {"config.json": b'{"architectures": ["LlamaForCausalLM"]}', "README.md": b"#"}
        self.weights: dict[str, bytes] = {"model.safetensors": bytes(range(256)) * 40}  # with a SHA-256 on the hub
        self.listed: dict[str, dict[str, object]] = {}  # what the listing says wrongly
        self.branches = {"main": COMMIT}
        self.token: str | None = None
        self.troubles: list[Trouble] = []
        self.asked: list[tuple[str, str | None, str | None]] = []  # path, Range, Authorization
        self.error_codes = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def access(self, cache: Path, token: str | None = None, offline: bool = False) -> HubAccess:
        return HubAccess(self.url, cache, token, offline)

    def paths(self, part: str = "") -> list[str]:
        return [path for path, _, _ in self.asked if part in path]

    def content(self, path: str) -> bytes | None:
        return {**self.files, **self.weights}.get(path)

    def siblings(self) -> list[dict[str, object]]:
        plain = [{"rfilename": path, "size": len(content)} for path, content in self.files.items()]
        large = [
            {
                "rfilename": path,
                "size": len(content),
                "lfs": {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)},
            }
            for path, content in self.weights.items()
        ]
        return [{**sibling, **self.listed.get(str(sibling["rfilename"]), {})} for sibling in plain + large]


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        hub, path = self.server, self.path.partition("?")[0]
        hub.asked.append((path, self.headers["Range"], self.headers["Authorization"]))
        trouble = self._trouble(path)
        if trouble is not None and trouble.status:
            self._reply(trouble.status, b"no", trouble.headers)
        elif path.startswith("/files/"):
            self._file(hub.content(path.removeprefix("/files/")), trouble)
        elif hub.token is not None and self.headers["Authorization"] != f"Bearer {hub.token}":
            self._refuse(401, "GatedRepo")
        elif path.startswith("/api/models/"):
            self._api(path.removeprefix("/api/models/"))
        else:
            repository, _, rest = path.lstrip("/").partition("/resolve/")
            commit, _, name = rest.partition("/")
            known = repository == "org/tiny" and commit == COMMIT
            self._file(hub.content(name) if known else None, trouble)

    def _trouble(self, path: str) -> Trouble | None:
        for trouble in self.server.troubles:
            if path.endswith(trouble.ending) and trouble.times > 0:
                trouble.times -= 1
                return trouble
        return None

    def _api(self, rest: str) -> None:
        hub = self.server
        repository, _, revision = rest.partition("/revision/")
        if repository != "org/tiny":
            self._refuse(404, "RepoNotFound")
        elif revision and revision not in (*hub.branches, COMMIT):
            self._refuse(404, "RevisionNotFound")
        else:
            commit = hub.branches.get(revision, COMMIT)
            self._reply(200, msgspec.json.encode({"sha": commit, "siblings": hub.siblings()}))

    def _refuse(self, status: int, code: str) -> None:
        self._reply(status, b"no", {"X-Error-Code": code} if self.server.error_codes else {})

    def _file(self, content: bytes | None, trouble: Trouble | None) -> None:
        if content is None:
            self._refuse(404, "EntryNotFound")
            return
        headers = {"ETag": hashlib.sha256(content).hexdigest()}
        first, status = 0, 200
        if asked := self.headers["Range"]:
            first = int(asked.removeprefix("bytes=").partition("-")[0])
            last = asked.partition("-")[2]
            if first >= len(content):
                self._reply(416, b"", headers)
                return
            status = 206
            headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
            content = content[first : int(last) + 1] if last else content[first:]
        if trouble is not None:  # half of it, then the connection breaks
            self._reply(status, content[: len(content) // 2], headers, promised=len(content))
            self.close_connection = True
            return
        self._reply(status, content, headers)

    def _reply(self, status: int, content: bytes, headers: dict[str, str] | None = None, promised: int = -1) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) if promised < 0 else promised))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def trouble() -> type[Trouble]:
    """To make one."""
    return Trouble


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits are short."""
    monkeypatch.setattr("octavo_runtime.fetch.patience._FIRST_WAIT", 0.001)
    monkeypatch.setattr("octavo_runtime.fetch.patience._LONGEST_WAIT", 0.01)


@pytest.fixture
def forbid(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes files of a name unreadable for this user: the mode of a file is nothing to root, who may run the tests."""
    opened = Path.open

    def forbid(name: str) -> None:
        def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
            if path.name == name:
                raise PermissionError(13, "Permission denied", str(path))
            return opened(path, *arguments, **options)

        monkeypatch.setattr(Path, "open", refuse)

    return forbid
