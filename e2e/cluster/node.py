"""One node: its containerd, its kubelet, their configuration, and how the node is lost and comes back.

Two nodes share one machine and one network namespace, so everything that a node owns by default for itself alone (sockets,
folders, ports, the pods' bridge) is given per node here.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.binaries import Binaries
from e2e.cluster.commands import CommandError, run
from e2e.cluster.keys import Keys, kubelet
from e2e.cluster.processes import Daemon, kill_tree, with_argument
from e2e.cluster.settings import IMAGE_DOMAIN, Node, Places
from e2e.cluster.waiting import retry

PAUSE_IMAGE = f"{IMAGE_DOMAIN}/pause:1"
SHIM = "containerd-shim-runc-v2"

CONTAINERD_CONFIG = """\
version = 2
root = "{store}"
state = "{run}/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "{socket}"
[ttrpc]
  address = "{socket}.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Lowering a process's oom_score_adj needs a capability that machines like this lack.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{run}/cni"
"""


@dataclass(frozen=True, slots=True)
class NodeProcesses:
    """A node and the programs that make it one."""

    node: Node
    places: Places
    binaries: Binaries
    keys: Keys

    @property
    def run_folder(self) -> Path:
        return self.places.node_run(self.node)

    @property
    def socket(self) -> Path:
        return self.places.containerd_socket(self.node)

    @property
    def containerd(self) -> Daemon:
        return self._daemon("containerd", ["containerd", "--config", self.run_folder / "containerd.toml"])

    @property
    def kubelet(self) -> Daemon:
        flags = [
            f"--config={self.run_folder / 'kubelet.json'}",
            f"--kubeconfig={self.keys.kubeconfig(kubelet(self.node))}",
            f"--hostname-override={self.node.name}",
            f"--node-ip={self.node.address}",
            f"--root-dir={self.run_folder / 'kubelet'}",
            f"--cert-dir={self.run_folder / 'kubelet' / 'pki'}",
        ]
        return self._daemon("kubelet", [self.binaries.component("kubelet"), *flags])

    def daemons(self) -> list[Daemon]:
        """In the order in which they are started."""
        return [self.containerd, self.kubelet]

    def configure(self) -> None:
        """Write what both programs read."""
        self.run_folder.mkdir(parents=True, exist_ok=True)
        store = self.places.node_store(self.node)
        store.mkdir(parents=True, exist_ok=True)
        words = {"store": store, "run": self.run_folder, "socket": self.socket, "pause": PAUSE_IMAGE}
        (self.run_folder / "containerd.toml").write_text(CONTAINERD_CONFIG.format_map(words))
        (self.run_folder / "kubelet.json").write_text(json.dumps(self._kubelet_configuration(), indent=1))
        cni = self.run_folder / "cni"
        cni.mkdir(exist_ok=True)
        (cni / "10-octavo.conflist").write_text(json.dumps(self._cni_configuration(), indent=1))

    def ctr(self, *arguments: str | Path, stdin: bytes | None = None, timeout: float | None = None) -> str:
        """containerd's own client, on this node."""
        command = ["ctr", "--namespace", "k8s.io", "--address", self.socket, *arguments]
        return run(command, stdin=stdin, timeout=timeout)

    def kill(self) -> None:
        """The node is lost: everything on it ends at once, without a word to anybody."""
        self.kubelet.kill()
        self.containerd.kill()
        for pid in with_argument(SHIM, str(self.socket)):
            kill_tree(pid)

    def revive(self) -> None:
        """The node is back, its containers are not: the kubelet starts what still belongs here."""
        self.containerd.start()
        retry(
            lambda: self.ctr("version"), f"containerd of {self.node.name}"
        )  # a kubelet that does not find it gives up
        self.kubelet.start()

    def remove_containers(self) -> None:
        """Forget all containers and their file systems; the images stay. containerd must run, the kubelet must not."""
        for pid in with_argument(SHIM, str(self.socket)):
            kill_tree(pid)
        for name in self.ctr("containers", "list", "--quiet").split():
            with suppress(CommandError):
                self.ctr("tasks", "delete", "--force", name)
            with suppress(CommandError):
                self.ctr("containers", "delete", name)

    def _kubelet_configuration(self) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.node.address,
            "healthzPort": 0,
            "readOnlyPort": 0,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "podLogsDir": str(self.run_folder / "pod-logs"),
            "volumePluginDir": str(self.run_folder / "volume-plugins"),
            # No cluster DNS: a look-up in a pod fails at once, instead of after a wait.
            "resolvConf": "",
            "clusterDNS": ["127.0.0.1"],
            # Control groups of version 1, without a systemd that manages them.
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failCgroupV1": False,
            "failSwapOn": False,
            # The machine's disk is shared: its fill level says nothing about a node.
            "evictionHard": {},
            "imageGCHighThresholdPercent": 100,
            "nodeLeaseDurationSeconds": 16,
            "nodeStatusUpdateFrequency": "5s",
            "syncFrequency": "10s",
            "shutdownGracePeriod": "0s",
            "registryPullQPS": 100,
            "serializeImagePulls": False,
            "kubeAPIQPS": 200,
            "kubeAPIBurst": 400,
            "eventRecordQPS": 0,
            "featureGates": {},
        }

    def _cni_configuration(self) -> dict[str, object]:
        addresses = {
            "type": "host-local",
            "dataDir": str(self.run_folder / "addresses"),
            "ranges": [[{"subnet": self.node.pod_subnet}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        bridge = {
            "type": "bridge",
            "bridge": self.node.bridge,
            "isGateway": True,
            "hairpinMode": True,
            "ipam": addresses,
        }
        return {"cniVersion": "0.4.0", "name": f"octavo-{self.node.name}", "plugins": [bridge]}

    def _daemon(self, program: str, command: list[str | Path]) -> Daemon:
        name = f"{program}-{self.node.name}"
        pid_file = self.places.run / "pids" / name
        return Daemon(name=name, command=command, pid_file=pid_file, log=self.places.logs / f"{name}.log")
