"""Processes inside pods, as the machine sees them: to end or stop one the way a fault would."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.cluster.node import NodeProcesses
from e2e.cluster.processes import children_of


def main_process(node: NodeProcesses, pod: Mapping[str, Any], container: str = "") -> int:
    """The pid, outside, of a container's first process.

    :raises LookupError: when the container does not run
    """
    statuses = pod.get("status", {}).get("containerStatuses") or []
    wanted = next((each for each in statuses if container in ("", each["name"])), None)
    identity = str((wanted or {}).get("containerID") or "").rpartition("/")[2]
    for line in node.ctr("tasks", "list").splitlines()[1:]:
        name, pid, state = line.split()[:3]
        if name == identity and state == "RUNNING":
            return int(pid)
    raise LookupError(f"no running container {container or identity or '?'} in pod {pod['metadata']['name']}")


def process_tree(pid: int) -> list[tuple[int, str]]:
    """(pid, command line) of a process and all below it."""
    found = [(pid, command_line(pid))]
    for child in children_of(pid):
        found += process_tree(child)
    return found


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def send(pid: int, number: signal.Signals) -> None:
    os.kill(pid, number)
