"""`serve` from settings to exit code, over an engine process that is a thread and a text layer of bytes."""

import gc
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from octavo_runtime import main
from octavo_runtime.engine.channel import Channel, ChannelClosedError
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.engine.messages import EngineFailed, Shutdown
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.hub import ModelKind, ModelSource
from octavo_runtime.main import make_ssl_context, process_registry, serve, server_config
from octavo_runtime.server.interfaces import TextLayer
from octavo_runtime.server.testing import EOS, ByteTokenizer, PlainTemplate, ready_message
from octavo_runtime.settings import Settings

SOURCE = ModelSource("org/tiny", Path("/models/tiny"), ModelKind.SAFETENSORS, {}, {})

Script = Callable[["FakeProcess"], None]


@dataclass
class FakeProcess:
    """Stands for `EngineProcess`: `script` plays the engine in a thread."""

    script: Script
    url: str
    heartbeat: Heartbeat = field(default_factory=Heartbeat.create)
    settings_json: str = ""
    told: list[object] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def start(self, settings_json: str, _environment: dict[str, str]) -> "FakeProcess":
        self.settings_json = settings_json
        self.channel, theirs = socket.socketpair()
        self.engine = Channel(theirs)
        threading.Thread(target=self._play, args=(theirs,), daemon=True).start()
        return self

    def _play(self, theirs: socket.socket) -> None:
        with theirs:
            self.script(self)

    def ended_by(self) -> None:
        """No signal killed it."""

    def listen(self) -> None:
        """Until the front end says so or is gone."""
        try:
            while Shutdown() not in self.told:
                self.told += self.engine.receive(0.05)
        except ChannelClosedError:
            self.told.append("closed")

    def status(self, path: str) -> int:
        """Asks the server that this process belongs to, as soon as it listens."""
        while True:
            try:
                with urllib.request.urlopen(self.url + path, timeout=5) as response:
                    return int(response.status)
            except urllib.error.HTTPError as error:
                return error.code
            except OSError:
                threading.Event().wait(0.01)

    def ready(self) -> None:
        self.engine.send(ready_message())
        while self.status("/health/ready") != 200:
            threading.Event().wait(0.01)

    async def stop(self) -> None:
        self.calls.append("stop")

    def kill(self) -> None:
        self.calls.append("kill")

    def dump_stacks(self) -> None:
        self.calls.append("dump_stacks")


@dataclass
class Ended:
    """One run of `serve`."""

    code: int
    process: FakeProcess
    cause: dict[str, str] | None


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Ended]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path / "termination.json"
    values = {"model": "m", "host": "127.0.0.1", "port": port, "termination_log": log, "shutdown_timeout": 5}

    def run_one(script: Script, **more: Any) -> Ended:
        process = FakeProcess(script, f"http://127.0.0.1:{port}")
        monkeypatch.setattr(main, "EngineProcess", process)
        code = serve(Settings.from_values({**values, **more}))
        return Ended(code, process, json.loads(log.read_text()) if log.exists() else None)

    monkeypatch.setattr(main, "configure_logging", lambda *_, **__: None)
    monkeypatch.setattr(main, "ERROR_FLUSH_SECONDS", 0.05)
    monkeypatch.setattr(main, "resolve_model", lambda *_: SOURCE)
    monkeypatch.setattr(main, "load_text", lambda *_: TextLayer(ByteTokenizer(), PlainTemplate(), (EOS,)))
    yield run_one
    gc.collect()


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_sigterm_when_ready_tells_the_engine_waits_for_it_and_exits_zero(run: Callable[..., Ended]) -> None:
    def script(process: FakeProcess) -> None:
        process.ready()
        terminate()
        process.listen()

    ended = run(script)
    assert (ended.code, ended.cause) == (0, None)
    assert ended.process.told == [Shutdown()]
    assert ended.process.calls == ["stop", "kill"]


def test_the_server_answers_probes_while_the_engine_loads_and_is_not_ready(run: Callable[..., Ended]) -> None:
    seen = []

    def script(process: FakeProcess) -> None:
        seen.extend((process.status("/health/live"), process.status("/health/ready")))
        terminate()
        process.listen()

    assert run(script).code == 0
    assert seen == [200, 503]


def test_the_engine_process_gets_the_models_place_and_no_keys(run: Callable[..., Ended]) -> None:
    def script(process: FakeProcess) -> None:
        process.status("/health/live")
        terminate()

    ended = run(script, api_key=["very-secret"])
    sent = json.loads(ended.process.settings_json)
    assert sent["model"]["model"] == str(SOURCE.path)
    assert "very-secret" not in ended.process.settings_json


@pytest.mark.parametrize("when", ["loading", "ready"])
def test_a_failing_engine_ends_the_server_with_its_cause(
    run: Callable[..., Ended], capsys: pytest.CaptureFixture[str], when: str
) -> None:
    def script(process: FakeProcess) -> None:
        if when == "ready":
            process.ready()
        process.engine.send(EngineFailed(cause=StartCause.OUT_OF_MEMORY.value, message="Give the cache less."))
        process.listen()

    ended = run(script)
    assert (ended.code, ended.cause) == (1, {"cause": "OutOfMemory", "message": "Give the cache less."})
    assert "octavo: Give the cache less.\n" in capsys.readouterr().err
    assert ended.process.calls[-1] == "kill"


def test_an_engine_that_vanishes_ends_the_server(run: Callable[..., Ended]) -> None:
    ended = run(FakeProcess.ready)
    assert ended.code == 1
    assert ended.cause is not None
    assert ended.cause["cause"] == "EngineDied"


def test_an_engine_with_work_and_no_pulse_is_hung_and_shows_its_stacks(run: Callable[..., Ended]) -> None:
    def script(process: FakeProcess) -> None:
        process.heartbeat.beat(has_work=True)
        process.listen()

    ended = run(script, engine_hang_timeout=1)
    assert ended.code == 1
    assert ended.cause is not None
    assert ended.cause["cause"] == "EngineHung"
    assert "dump_stacks" in ended.process.calls


def test_a_port_in_use_is_said_and_leaves_no_engine_behind(run: Callable[..., Ended]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run(FakeProcess.listen, port=port)
    assert ended.code == 1
    assert ended.cause is not None
    assert ended.cause["cause"] == "AddressInUse"
    assert f"--port {port}" in ended.cause["message"]
    assert ended.process.calls == ["kill"]


def test_a_model_that_is_not_there_is_one_sentence_and_exit_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "configure_logging", lambda *_, **__: None)
    log = tmp_path / "termination.json"
    assert serve(Settings.from_values({"model": str(tmp_path / "none"), "termination_log": log})) == 1
    assert json.loads(log.read_text())["cause"] == "ModelNotFound"
    assert capsys.readouterr().err.startswith("octavo: ")


def test_the_server_is_told_the_models_own_name_unless_others_are_given() -> None:
    plain = server_config(Settings.from_values({"model": "m"}), SOURCE, ("key",))
    assert (plain.served_model_names, plain.model_root, plain.api_keys) == (("org/tiny",), "/models/tiny", ("key",))
    named = server_config(Settings.from_values({"model": "m", "served_model_name": ["a", "b"]}), SOURCE, ())
    assert named.served_model_names == ("a", "b")


def test_settings_of_the_server_reach_it() -> None:
    values = {
        "allowed_origins": ["https://a.example"], "max_body_bytes": 5000, "max_num_queued_reqs": 7, "max_logprobs": 3,
        "stream_interval": 4, "disable_access_log": True, "root_path": "/llm",
    }  # fmt: skip
    config = server_config(Settings.from_values({"model": "m", **values}), SOURCE, ())
    assert config.allowed_origins == ("https://a.example",)
    assert (config.max_body_bytes, config.max_num_queued_reqs, config.max_logprobs) == (5000, 7, 3)
    assert (config.stream_interval, config.access_log, config.root_path) == (4, False, "/llm")


def test_tls_needs_files_that_exist(tmp_path: Path) -> None:
    assert make_ssl_context(Settings.from_values({"model": "m"})) is None
    with pytest.raises(StartError, match="--ssl-keyfile needs --ssl-certfile") as caught:
        make_ssl_context(Settings.from_values({"model": "m", "ssl_keyfile": tmp_path / "key"}))
    assert caught.value.cause is StartCause.INVALID_SETTINGS
    with pytest.raises(StartError, match=str(tmp_path / "cert")):
        make_ssl_context(Settings.from_values({"model": "m", "ssl_certfile": tmp_path / "cert"}))


def test_tls_with_a_certificate_gives_a_context(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-keyout", tmp_path / "key", "-out", tmp_path / "cert"],
        capture_output=True, check=True,
    )  # fmt: skip
    files = {"ssl_certfile": tmp_path / "cert", "ssl_keyfile": tmp_path / "key", "ssl_ca_certs": tmp_path / "cert"}
    context = make_ssl_context(Settings.from_values({"model": "m", **files}))
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_process_metrics_are_in_the_registry() -> None:
    text = generate_latest(process_registry()).decode()
    assert "process_resident_memory_bytes" in text
    assert "python_info" in text


def test_the_http_process_imports_no_torch() -> None:
    code = "import sys, octavo_runtime.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
