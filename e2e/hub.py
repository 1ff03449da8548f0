"""The hub mirror that pods download from: `e2e/mirror.py` in a process of its own, with SmolLM2 in it, and how to upset it."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.cluster.settings import API_ADDRESS, child_environment
from e2e.models import HUB_NAME

START_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Hub:
    """A mirror: `url` for `spec.model.endpoint`."""

    url: str
    root: Path

    def add(self, repository: str, branch: str, folder: Path) -> None:
        """Serve the files of a folder as one branch of a repository."""
        place = self.root / repository / branch
        place.mkdir(parents=True)
        for file in folder.iterdir():
            (place / file.name).symlink_to(file)

    def behave(self, repository: str = HUB_NAME, **behaviour: Any) -> None:
        """Misbehave from now on; the fields are those of `mirror.Behaviour`."""
        self._control("POST", repository, json.dumps(behaviour).encode())

    def mend(self, repository: str = HUB_NAME) -> None:
        """Behave again."""
        self._control("DELETE", repository, None)

    def _control(self, method: str, repository: str, body: bytes | None) -> None:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/_mirror/{repository}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=10):
            pass


@contextmanager
def start_hub(root: Path, model: Path, port: int) -> Iterator[Hub]:
    """A mirror on this machine's address in the cluster, for as long as the block lasts."""
    hub = Hub(f"http://{API_ADDRESS}:{port}", root)
    hub.add(HUB_NAME, "main", model)
    script = Path(__file__).with_name("mirror.py")
    command = [sys.executable, str(script), str(root), f"--host={API_ADDRESS}", f"--port={port}"]
    with (
        (root.parent / "hub.log").open("w") as log,
        subprocess.Popen(command, env=child_environment(), stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        try:
            _wait_until_it_answers(hub, process)
            yield hub
        finally:
            process.terminate()


def _wait_until_it_answers(hub: Hub, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            with urllib.request.urlopen(f"{hub.url}/_mirror", timeout=2):
                return
        except (urllib.error.URLError, OSError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the hub mirror did not start; see hub.log beside its folder") from error
        time.sleep(0.1)
