"""The two-node cluster as one thing: start, stop, is it there. Each is safe to repeat, and after a crash of the machine."""

import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.binaries import Binaries, build_helm, build_kubernetes
from e2e.cluster.commands import CommandError, run, succeeds
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.disk import require_space
from e2e.cluster.keys import ADMIN, Keys, make_keys
from e2e.cluster.network import make_network, remove_network
from e2e.cluster.node import NodeProcesses
from e2e.cluster.packages import install_packages
from e2e.cluster.pause_image import import_pause
from e2e.cluster.processes import Daemon, ProcessError
from e2e.cluster.progress import say
from e2e.cluster.settings import NODES, Places

NODES_READY_TIMEOUT_S = 90.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """All programs of the cluster, running or not."""

    places: Places
    binaries: Binaries
    control_plane: ControlPlane
    nodes: tuple[NodeProcesses, ...]

    def daemons(self) -> list[Daemon]:
        return [*self.control_plane.daemons(), *(daemon for node in self.nodes for daemon in node.daemons())]

    def running(self) -> bool:
        """Whether every program lives and the API server answers."""
        return all(daemon.alive() for daemon in self.daemons()) and self.control_plane.ready()

    def kubectl(self, *arguments: str) -> str:
        return run(["kubectl", f"--kubeconfig={self.places.kubeconfig}", *arguments], timeout=120)


def describe(places: Places) -> Cluster:
    """The cluster of these places; builds and starts nothing."""
    binaries = Binaries(places.root / "kubernetes")
    keys = Keys(places.run / "keys")
    plane = ControlPlane(places, binaries, keys)
    return Cluster(places, binaries, plane, tuple(NodeProcesses(node, places, binaries, keys) for node in NODES))


def up(places: Places) -> Cluster:
    """A running cluster: what is missing is installed, built and started; nothing happens where it runs already."""
    cluster = describe(places)
    if cluster.running():
        return cluster
    require_space(places)
    install_packages()
    build_kubernetes(places)
    build_helm(places)
    down(places)
    with suppress(FileNotFoundError):
        shutil.rmtree(places.logs)
    started = time.monotonic()
    places.run.mkdir(parents=True, exist_ok=True)
    places.run.chmod(0o700)
    make_keys(places.run / "keys")
    make_network()
    plane = cluster.control_plane
    plane.etcd.start()
    plane.api_server.start()
    for node in cluster.nodes:
        node.configure()
        node.containerd.start()
    plane.wait_ready()
    shutil.copyfile(cluster.control_plane.keys.kubeconfig(ADMIN), places.kubeconfig)
    places.kubeconfig.chmod(0o600)
    for daemon in (plane.controller_manager, plane.scheduler, plane.proxy):
        daemon.start()
    for node in cluster.nodes:
        import_pause(node, cluster.binaries)
        node.kubelet.start()
    wait_nodes_ready(cluster)
    say(f"two nodes are ready after {time.monotonic() - started:.1f} s")
    return cluster


def down(places: Places) -> None:
    """Nothing of the cluster is left but what makes the next start quick: binaries, images, and the last logs."""
    cluster = describe(places)
    for node in cluster.nodes:
        node.kubelet.stop()
    for node in cluster.nodes:
        with suppress(CommandError):
            if node.containerd.alive():
                node.remove_containers()
        node.kill()
    for daemon in reversed(cluster.control_plane.daemons()):
        daemon.stop()
    if places.run.exists():
        _unmount_below(places.run)
        _unmount_below(places.root / "stores")
        with suppress(CommandError):
            run([cluster.binaries.component("kube-proxy"), "--cleanup"])
        remove_network()
        shutil.rmtree(places.run)


def wait_nodes_ready(cluster: Cluster, timeout: float = NODES_READY_TIMEOUT_S) -> None:
    """Until every node is Ready."""
    deadline = time.monotonic() + timeout
    template = "{range .items[*]}{.status.conditions[?(@.type=='Ready')].status} {end}"
    while True:
        with suppress(CommandError):
            if cluster.kubectl("get", "nodes", f"-o=jsonpath={template}").split() == ["True"] * len(NODES):
                return
        if time.monotonic() > deadline:
            tails = "\n".join(f"{node.kubelet.name}:\n{node.kubelet.tail(1500)}" for node in cluster.nodes)
            raise ProcessError(f"the nodes are not ready after {timeout:.0f} s\n{tails}")
        time.sleep(0.2)


def _unmount_below(folder: Path) -> None:
    """Deepest first; what is still in use is let go when its last user ends."""
    prefix = f"{folder}/"
    lines = Path("/proc/self/mounts").read_text().splitlines()
    points = [line.split()[1].encode().decode("unicode_escape") for line in lines]
    for point in sorted((point for point in points if point.startswith(prefix)), key=len, reverse=True):
        succeeds(["umount", "--lazy", point])
