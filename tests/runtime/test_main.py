"""`serve` from settings to exit code, over an engine process that is a thread and a text layer of bytes."""

import asyncio
import errno
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from octavo_runtime import key_files, main, startup
from octavo_runtime.engine.channel import Channel, ChannelClosedError
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.engine.messages import EngineFailed, Shutdown
from octavo_runtime.errors import StartCause
from octavo_runtime.hub import ModelKind, ModelSource
from octavo_runtime.main import serve
from octavo_runtime.server.interfaces import TextLayer
from octavo_runtime.server.testing import EOS, ByteTokenizer, PlainTemplate, ready_message
from octavo_runtime.settings import Settings

SOURCE = ModelSource("org/tiny", Path("/models/tiny"), ModelKind.SAFETENSORS, {}, {})


async def find(*_: object) -> ModelSource:
    return SOURCE


Script = Callable[["FakeProcess"], None]


@dataclass
class FakeProcess:
    """Stands for `EngineProcess`: `script` plays the engine in a thread."""

    script: Script
    url: str
    settings_json: str = ""
    told: list[object] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def start(self, settings_json: str, _environment: dict[str, str], heartbeat: Heartbeat) -> "FakeProcess":
        self.settings_json = settings_json
        self.heartbeat = heartbeat
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

    def status(self, path: str, key: str = "") -> int:
        """Asks the server that this process belongs to, as soon as it listens."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {key}"})
        while True:
            try:
                with urllib.request.urlopen(request, timeout=5) as response:
                    return int(response.status)
            except urllib.error.HTTPError as error:
                return error.code
            except OSError:
                threading.Event().wait(0.01)

    def until(self, path: str, word: str) -> None:
        """Until the answer holds the word."""
        while True:
            try:
                with urllib.request.urlopen(self.url + path, timeout=5) as response:
                    if word in response.read().decode():
                        return
            except OSError:
                pass
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
        monkeypatch.setattr(startup, "EngineProcess", process)
        code = serve(Settings.from_values({**values, **more}))
        return Ended(code, process, json.loads(log.read_text()) if log.exists() else None)

    monkeypatch.setattr(main, "configure_logging", lambda *_, **__: None)
    monkeypatch.setattr(main, "ERROR_FLUSH_SECONDS", 0.05)
    monkeypatch.setattr(main, "STACKS_SECONDS", 0.05)
    monkeypatch.setattr(startup, "find_model", find)
    monkeypatch.setattr(startup, "load_text", lambda *_: TextLayer(ByteTokenizer(), PlainTemplate(), (EOS,)))
    run_one.url = f"http://127.0.0.1:{port}"  # type: ignore[attr-defined]
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


def test_a_port_in_use_is_said_before_an_engine_is_started(run: Callable[..., Ended]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run(FakeProcess.listen, port=port)
    assert ended.code == 1
    assert ended.cause is not None
    assert ended.cause["cause"] == "AddressInUse"
    assert f"--port {port}" in ended.cause["message"]
    assert ended.process.calls == []


def test_a_model_that_is_not_there_is_one_sentence_and_exit_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "configure_logging", lambda *_, **__: None)
    log = tmp_path / "termination.json"
    values = {"model": str(tmp_path / "none"), "termination_log": log, "host": "127.0.0.1", "port": 0}
    assert serve(Settings.from_values(values)) == 1
    assert json.loads(log.read_text())["cause"] == "ModelNotFound"
    assert capsys.readouterr().err.startswith("octavo: ")


def seconds_to_end(run: Callable[..., Ended], script: Script, **more: Any) -> tuple[float, Ended]:
    """From the signal that the script sends."""
    sent: list[float] = []

    def timed(process: FakeProcess) -> None:
        script(process)
        sent.append(time.monotonic())
        terminate()
        process.listen()

    ended = run(timed, **more)
    return time.monotonic() - sent[0], ended


def test_sigterm_while_the_model_loads_ends_at_once_with_zero(run: Callable[..., Ended]) -> None:
    seconds, ended = seconds_to_end(run, lambda process: process.until("/status", "Loading"))
    assert (ended.code, ended.cause) == (0, None)
    assert seconds < 1
    assert ended.process.told in ([], ["closed"])
    assert ended.process.calls[0] == "kill"


def beside(work: Callable[[], None]) -> threading.Thread:
    """Runs beside the server, which blocks."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


async def never(*_: object) -> ModelSource:
    await asyncio.sleep(3600)
    return SOURCE


def test_the_port_answers_before_the_model_is_found_and_sigterm_ends_that_too(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "find_model", never)
    seen: list[int] = []
    process = FakeProcess(FakeProcess.listen, run.url)  # type: ignore[attr-defined]

    def look() -> None:
        process.until("/status", "Resolving")
        seen.extend(process.status(path) for path in ("/health/live", "/health/startup", "/metrics", "/v1/models"))
        terminate()

    thread = beside(look)
    assert run(FakeProcess.listen).code == 0
    thread.join()
    assert seen == [200, 503, 200, 503]


def test_a_start_that_takes_longer_than_its_budget_ends_with_where_it_was(run: Callable[..., Ended]) -> None:
    ended = run(FakeProcess.listen, startup_timeout=1)
    assert ended.code == 1
    assert ended.cause is not None
    assert ended.cause["cause"] == "StartupDeadlineExceeded"
    assert "Loading" in ended.cause["message"]
    assert ended.process.calls == ["kill"]


def test_a_server_that_is_ready_in_time_goes_on_after_its_budget(run: Callable[..., Ended]) -> None:
    def script(process: FakeProcess) -> None:
        process.ready()
        time.sleep(1.2)
        assert process.status("/health/ready") == 200
        terminate()
        process.listen()

    assert run(script, startup_timeout=1).code == 0


def test_what_this_build_cannot_do_is_refused_before_anything_listens(run: Callable[..., Ended]) -> None:
    ended = run(FakeProcess.listen, tensor_parallel_size=2)
    assert ended.code == 1
    assert ended.cause is not None
    assert ended.cause["cause"] == "ParallelismUnsupported"
    assert ended.process.settings_json == ""


def test_what_nobody_foresaw_is_a_cause_too(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> ModelSource:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(startup, "find_model", broken)
    ended = run(FakeProcess.listen)
    assert ended.cause is not None
    assert (ended.code, ended.cause["cause"]) == (1, "DiskFull")


def test_a_key_file_that_changes_is_read_again(
    run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_files, "POLL_SECONDS", 0.05)
    keys = tmp_path / "keys"
    keys.write_text("old\n")
    seen = []

    def script(process: FakeProcess) -> None:
        process.ready()
        seen.append(process.status("/v1/models", "new"))
        keys.write_text("new\n")
        while process.status("/v1/models", "new") != 200:
            time.sleep(0.01)
        seen.append(process.status("/v1/models", "old"))
        terminate()
        process.listen()

    assert run(script, api_key_file=keys).code == 0
    assert seen == [401, 401]


def test_the_http_process_imports_no_torch() -> None:
    code = "import sys, octavo_runtime.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
