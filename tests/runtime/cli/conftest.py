"""A server and an LLM that stream one scripted answer."""

import json
import threading
from collections.abc import Generator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.settings import Settings


class ScriptedServer(ThreadingHTTPServer):
    """Answers like /v1/models, /v1/chat/completions and /v1/completions; `bodies` are what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.error: dict[str, str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self._reply(200, json.dumps({"data": [{"id": "tiny"}]}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        self.server.keys.append(self.headers["Authorization"])
        if body.get("max_tokens") == 400:
            self._reply(400, json.dumps({"error": {"message": "max_tokens is wrong."}}).encode())
            return
        pieces = ["Hel", "lo"]
        if "messages" in body:
            events: list[dict[str, Any]] = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
        else:
            events = [{"choices": [{"text": piece}]} for piece in pieces]
        if self.server.error is not None:
            events.append({"error": self.server.error})
        lines = [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]
        self._reply(200, "".join(lines).encode())

    def _reply(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


class ScriptedLLM:
    """Stands in for `LLM`; `asked` is what it was asked."""

    has_chat_template = True

    def __init__(self) -> None:
        self.asked: list[tuple[Any, SamplingParams]] = []

    def from_settings(self, _: Settings) -> "ScriptedLLM":
        return self

    def get_default_sampling_params(self) -> SamplingParams:
        return SamplingParams(top_p=0.5)

    def chat_token_ids(self, messages: list[dict[str, str]]) -> list[dict[str, str]]:
        return list(messages)

    def stream(self, prompt: Any, params: SamplingParams) -> Generator[str, None, None]:
        if prompt == "interrupt":
            raise KeyboardInterrupt
        self.asked.append((prompt, params))
        yield from ("Hel", "lo")


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> ScriptedLLM:
    llm = ScriptedLLM()
    monkeypatch.setattr("octavo_runtime.llm.LLM", llm)
    monkeypatch.setattr("octavo_runtime.cli.verb.configure_logging", lambda *_, **__: None)
    return llm
