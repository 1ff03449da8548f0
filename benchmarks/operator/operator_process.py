"""The operator as users run it: a process of its own, with its defaults, that is looked at from outside."""

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.operator.control_plane import ControlPlane, daemon, free_ports
from benchmarks.operator.figures import Reading, cpu_seconds, parse_page, resident_bytes

START_SECONDS = 60.0
PREFIX = "OCTAVO_OPERATOR_"


@dataclass(frozen=True, slots=True)
class OperatorProcess:
    """One replica."""

    pid: int
    url: str

    def read(self) -> Reading:
        """Its cost until now; asking costs it a few milliseconds."""
        samples = parse_page(self._page("/metrics"))
        return Reading(time.monotonic(), cpu_seconds(self.pid), resident_bytes(self.pid), samples)

    def leads(self) -> bool:
        """Whether it works."""
        try:
            return parse_page(self._page("/metrics")).get("octavo_operator_leader") == 1
        except (urllib.error.URLError, OSError):
            return False

    def _page(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=30) as answer:
            return str(answer.read().decode())


@contextmanager
def start_operator(folder: Path, plane: ControlPlane, hub: str, profile: Path | None) -> Iterator[OperatorProcess]:
    """Until it leads, for as long as the block lasts. With `profile`, samples of its stacks are written there."""
    port = free_ports(1)[0]
    environment = {
        "KUBECONFIG": str(plane.kubeconfig),
        f"{PREFIX}PROBE_HOST": "127.0.0.1",
        f"{PREFIX}PROBE_PORT": str(port),
        f"{PREFIX}HUB_ENDPOINT": hub,
        f"{PREFIX}RUNTIME_POD_CPU": "100m",
        f"{PREFIX}RUNTIME_POD_MEMORY": "512Mi",
    }
    module: list[str | Path] = ["-m", "octavo_operator"]
    if profile is not None:
        module = [Path(__file__).with_name("profiled.py"), profile]
    with daemon(folder, [sys.executable, *module], environment, "operator") as process:
        operator = OperatorProcess(process.pid, f"http://127.0.0.1:{port}")
        deadline = time.monotonic() + START_SECONDS
        while not operator.leads():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the operator does not lead:\n{(folder / 'operator.log').read_text()[-3000:]}")
            time.sleep(0.2)
        yield operator
