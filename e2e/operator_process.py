"""`OperatorProcess`: a replica of the operator on this machine, from the checkout, to be killed and stopped at any moment.

It has the settings that the chart gives its pods. While such replicas run, the chart's own are away (`OperatorRelease.away`).
"""

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from e2e.cluster.network import free_port
from e2e.cluster.settings import child_environment
from e2e.operator_release import NAMESPACE, RUNTIME_CPU, RUNTIME_MEMORY
from e2e.settings import Settings

HOST = "127.0.0.1"
PREFIX = "OCTAVO_OPERATOR_"
LEADER = "octavo_operator_leader 1.0"


@dataclass(slots=True)
class OperatorProcess:
    """One replica: the same name however often it is started again."""

    settings: Settings
    kubeconfig: Path
    identity: str
    folder: Path
    port: int = 0
    process: "subprocess.Popen[bytes] | None" = field(default=None)

    def start(self) -> None:
        """Returns at once; its log goes on in the same file."""
        self.port = self.port or free_port(HOST)
        environment = child_environment(
            KUBECONFIG=str(self.kubeconfig),
            POD_NAMESPACE=NAMESPACE,
            **{
                f"{PREFIX}IDENTITY": self.identity,
                f"{PREFIX}RUNTIME_IMAGE": self.settings.runtime_image,
                f"{PREFIX}RUNTIME_POD_CPU": RUNTIME_CPU,
                f"{PREFIX}RUNTIME_POD_MEMORY": RUNTIME_MEMORY,
                f"{PREFIX}PROBE_HOST": HOST,
                f"{PREFIX}PROBE_PORT": str(self.port),
                f"{PREFIX}LOG_LEVEL": "DEBUG",
            },
        )
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "octavo_operator"]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    @property
    def log(self) -> Path:
        return self.folder / f"{self.identity}.log"

    def send(self, number: signal.Signals) -> None:
        """SIGSTOP, SIGCONT, SIGTERM."""
        if self.process is not None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """-9: it can finish nothing."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def leads(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.port}/metrics", timeout=2) as answer:
                return LEADER in answer.read().decode()
        except (urllib.error.URLError, OSError):
            return False
