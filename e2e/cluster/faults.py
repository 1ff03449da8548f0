"""Faults that the tests put into the cluster: lost nodes, restarted servers, cut connections, GPUs that are not there.

Each is undone by its counterpart or heals by itself. Works on the test cluster only: another cluster's programs are not ours.
"""

import json
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e.cluster.cluster import Cluster, wait_nodes_ready
from e2e.cluster.commands import run, succeeds
from e2e.cluster.containers import main_process, process_tree, send
from e2e.cluster.node import NodeProcesses
from e2e.cluster.settings import API_ADDRESS, API_PORT


class Faults:
    """What can go wrong, by name."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def node(self, name: str) -> NodeProcesses:
        return next(each for each in self.cluster.nodes if each.node.name == name)

    def set_gpus(self, node: str, count: int, resource: str = "nvidia.com/gpu") -> None:
        """Let a node claim to have `count` devices. The scheduler, quota and admission believe it; it outlives heartbeats."""
        pointer = resource.replace("/", "~1")
        patch = [
            {"op": "add", "path": f"/status/{field}/{pointer}", "value": str(count)}
            for field in ("capacity", "allocatable")
        ]
        self.cluster.kubectl(
            "patch", "node", node, "--subresource=status", "--type=json", f"--patch={json.dumps(patch)}"
        )

    def remove_gpus(self, node: str, resource: str = "nvidia.com/gpu") -> None:
        """Take the claim back: the node has never heard of such devices."""
        self.set_gpus(node, 0, resource)
        pointer = resource.replace("/", "~1")
        patch = [{"op": "remove", "path": f"/status/{field}/{pointer}"} for field in ("capacity", "allocatable")]
        self.cluster.kubectl(
            "patch", "node", node, "--subresource=status", "--type=json", f"--patch={json.dumps(patch)}"
        )

    @contextmanager
    def node_lost(self, name: str) -> Iterator[None]:
        """The node and all its containers are gone inside the block, and it is Ready again after it."""
        node = self.node(name)
        node.kill()
        try:
            yield
        finally:
            node.revive()
            wait_nodes_ready(self.cluster)

    def restart_api_server(self, pause: float = 0.0) -> None:
        """Kill the API server, and start it `pause` seconds later."""
        plane = self.cluster.control_plane
        plane.api_server.kill()
        time.sleep(pause)
        plane.api_server.start()
        plane.wait_ready()

    def restart_etcd(self, pause: float = 0.0) -> None:
        """Stop etcd (its data stays), and start it `pause` seconds later."""
        plane = self.cluster.control_plane
        plane.etcd.stop()
        time.sleep(pause)
        plane.etcd.start()
        plane.wait_ready()

    def cut_watches(self) -> int:
        """Reset every connection to the API server that is open now; returns how many there were."""
        address = f"{API_ADDRESS}:{API_PORT}"
        before = run(["ss", "--no-header", "--numeric", "state", "established", "src", address]).splitlines()
        run(["ss", "--kill", "state", "established", "src", address])
        return len(before)

    @contextmanager
    def api_server_silent(self) -> Iterator[None]:
        """Inside the block packets to the API server are dropped: connections stay open and nothing comes."""
        rule = ["--destination", API_ADDRESS, "--protocol", "tcp", "--dport", str(API_PORT), "--jump", "DROP"]
        chains = ("INPUT", "OUTPUT")
        for chain in chains:
            run(["iptables", "--insert", chain, *rule])
        try:
            yield
        finally:
            for chain in chains:
                succeeds(["iptables", "--delete", chain, *rule])

    @contextmanager
    def metrics_unreadable(self) -> Iterator[None]:
        """Inside the block no pod answers `GET /metrics`; it answers everything else, its probes too."""
        rule = ["--protocol", "tcp", "--dport", "8000", "--match", "string", "--algo", "bm", "--string", "GET /metrics"]
        chains = ("OUTPUT", "FORWARD")
        for chain in chains:
            run(["iptables", "--insert", chain, *rule, "--jump", "DROP"])
        try:
            yield
        finally:
            for chain in chains:
                succeeds(["iptables", "--delete", chain, *rule, "--jump", "DROP"])

    def kill_container(self, pod: Mapping[str, Any], container: str = "") -> None:
        """SIGKILL to a container's first process."""
        send(main_process(self.node(pod["spec"]["nodeName"]), pod, container), signal.SIGKILL)

    def processes(self, pod: Mapping[str, Any], container: str = "") -> list[tuple[int, str]]:
        """(pid on this machine, command line) of all that runs in a container; for `signal`."""
        return process_tree(main_process(self.node(pod["spec"]["nodeName"]), pod, container))

    def signal(self, pid: int, number: signal.Signals) -> None:
        """Stop (SIGSTOP), continue or end one process of a pod."""
        send(pid, number)

    @contextmanager
    def small_folder(self, folder: Path, size: str) -> Iterator[Path]:
        """A folder with a disk of its own, `size` large (as in `64m`): for disks that fill up."""
        folder.mkdir(parents=True, exist_ok=True)
        run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "octavo-e2e", folder])
        try:
            yield folder
        finally:
            succeeds(["umount", "--lazy", folder])
