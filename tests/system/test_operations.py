"""What an operator does with a real server: reads /status, drains it, changes its keys, stops it, finds it hung."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from served import Served, free_port, read_cause


def call(served: Served, method: str, path: str, key: str = "", body: Any = None) -> tuple[int, dict[str, Any], str]:
    """Status, JSON, and the Connection header."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(served.url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response), response.headers.get("Connection", "")
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), error.headers.get("Connection", "")


COMPLETION = {"prompt": "The capital of France is", "max_tokens": 3, "temperature": 0}


def test_a_server_is_drained_and_taken_back_and_its_keys_change_without_a_restart(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    keys, admin = tmp_path / "api-keys", tmp_path / "admin-keys"
    keys.write_text("old\n")
    admin.write_text(f"sha256:{sha256(b'admin').hexdigest()} operator\n")
    served = serve("--api-key-file", str(keys), "--admin-key-file", str(admin))

    status = call(served, "GET", "/status")[1]
    assert (status["phase"], status["draining"], status["model"]["architecture"]) == (
        "Ready",
        False,
        "LlamaForCausalLM",
    )
    assert None not in status["timings"].values()
    capacity = status["capacity"]
    assert capacity["max_tokens_in_cache"] == capacity["kv_blocks"] * capacity["block_size"]
    assert capacity["tokens_per_second"] > 0
    assert min(status["memory"].values()) > 0
    assert status["effective"] == {"max_model_len": 8192, "dtype": "bfloat16", "device": "cpu", "backend": "cpu"} | {
        "backend": status["effective"]["backend"]
    }

    assert call(served, "POST", "/drain", "old")[0] == 401
    assert call(served, "POST", "/drain", "admin")[1] == {"draining": True, "in_flight": 0, "waiting": 0}
    assert served.get("/health/ready")[0] == 503
    assert served.get("/health/live")[0] == 200
    assert call(served, "GET", "/status")[1]["phase"] == "Draining"
    code, reply, connection = call(served, "POST", "/v1/completions", "old", COMPLETION)
    assert (code, reply["choices"][0]["text"][:6], connection) == (200, " Paris", "close")
    assert call(served, "DELETE", "/drain", "admin")[1]["draining"] is False
    assert served.get("/health/ready")[0] == 200

    keys.write_text("new\n")
    deadline = time.monotonic() + 20
    while call(served, "GET", "/v1/models", "new")[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert call(served, "GET", "/v1/models", "old")[0] == 401
    assert not [secret for secret in ("old", "new", "admin\n") if f"key {secret}" in served.log.read_text()]
    assert served.terminate() == 0


def test_an_engine_that_was_stopped_is_found_by_the_next_request(serve: Callable[..., Served]) -> None:
    served = serve("--engine-hang-timeout", "1")
    os.kill(served.engine_pid(), signal.SIGSTOP)
    time.sleep(1.5)
    assert served.get("/health/live")[0] == 200  # nothing to do: nothing hangs
    started = time.monotonic()
    code, _, _ = call(served, "POST", "/v1/completions", body=COMPLETION)
    assert code == 500
    assert served.process.wait(20) == 1
    assert time.monotonic() - started < 15
    assert read_cause(served)["cause"] == "EngineHung"
    assert "core_loop.py" in served.log.read_text()  # the stacks


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_still_loads_ends_at_once_with_zero(tmp_path: Path, number: signal.Signals) -> None:
    port = free_port()
    words = [
        "serve",
        "embedded",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--termination-log",
        str(tmp_path / "cause"),
    ]
    with subprocess.Popen([sys.executable, "-m", "octavo_runtime", *words], stderr=subprocess.DEVNULL) as process:
        served = Served(f"http://127.0.0.1:{port}", process, tmp_path / "cause", tmp_path / "log")
        while True:
            try:
                phase = call(served, "GET", "/status")[1]["phase"]
                break
            except OSError:
                time.sleep(0.02)
        assert phase in ("Resolving", "Loading")
        started = time.monotonic()
        process.send_signal(number)
        assert process.wait(30) == 0
        assert time.monotonic() - started < 3
    assert not (tmp_path / "cause").exists()


def test_a_user_without_a_home_is_served(
    serve: Callable[..., Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("HOME", "/dev/null")  # not even root can write below it
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    served = serve()
    assert call(served, "POST", "/v1/completions", body=COMPLETION)[0] == 200
    assert served.terminate() == 0
    assert not [path for path in (tmp_path / "tmp").iterdir() if not path.name.startswith("octavo-")]
