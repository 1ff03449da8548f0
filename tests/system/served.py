"""A real server: `octavo serve` on the embedded model, in its own process tree."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

READY_SECONDS = 120.0


@dataclass
class Served:
    """A running server."""

    url: str
    process: subprocess.Popen[bytes]
    termination_log: Path
    log: Path

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.url + path, timeout=30) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name: str) -> float:
        """The value of a metric (the sum over its label sets)."""
        lines = self.get("/metrics")[1].splitlines()
        values = [float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name]
        assert values, f"no metric {name}"
        return sum(values)

    def engine_pid(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in children:
            if b"octavo_runtime.engine_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
        raise AssertionError(f"no engine process among {children}")

    def terminate(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def start(folder: Path, *flags: str) -> Served:
    port = free_port()
    log = folder / "server.log"
    command = [
        sys.executable, "-m", "octavo_runtime", "serve", "embedded", "--host", "127.0.0.1", "--port", str(port),
        "--served-model-name", "smollm2", "--termination-log", str(folder / "termination.json"), *flags,
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=dict(os.environ))
    served = Served(f"http://127.0.0.1:{port}", process, folder / "termination.json", log)
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the server ended with {process.returncode}:\n{log.read_text()[-4000:]}")
        try:
            if served.get("/health/ready")[0] == 200:
                return served
        except OSError:
            pass
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"the server was not ready after {READY_SECONDS} s:\n{log.read_text()[-4000:]}")


def read_cause(served: Served) -> dict[str, str]:
    return dict(json.loads(served.termination_log.read_text()))
