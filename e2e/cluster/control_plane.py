"""etcd, the API server, the controller manager, the scheduler and the service proxy: their flags, and when they are ready.

Flags that differ from a production cluster's are here for tests: short grace periods, no disk syncs.
"""

import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import keys as identities
from e2e.cluster.binaries import Binaries
from e2e.cluster.keys import Keys
from e2e.cluster.processes import Daemon, ProcessError
from e2e.cluster.settings import (
    API_ADDRESS,
    API_PORT,
    ETCD_PORT,
    NODES,
    POD_NETWORK,
    SERVICE_NETWORK,
    Places,
)

ETCD_URL = f"http://127.0.0.1:{ETCD_PORT}"
ETCD_PEER_URL = f"http://127.0.0.1:{ETCD_PORT + 1}"
READY_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The programs that hold and drive the cluster's state."""

    places: Places
    binaries: Binaries
    keys: Keys

    @property
    def etcd(self) -> Daemon:
        urls = [
            f"--listen-client-urls={ETCD_URL}",
            f"--advertise-client-urls={ETCD_URL}",
            f"--listen-peer-urls={ETCD_PEER_URL}",
            f"--initial-advertise-peer-urls={ETCD_PEER_URL}",
            f"--initial-cluster=default={ETCD_PEER_URL}",
        ]
        data = self.places.run / "etcd"
        return self._daemon("etcd", ["etcd", f"--data-dir={data}", "--unsafe-no-fsync", "--logger=zap", *urls])

    @property
    def api_server(self) -> Daemon:
        keys = self.keys
        flags = [
            f"--etcd-servers={ETCD_URL}",
            f"--bind-address={API_ADDRESS}",
            f"--advertise-address={API_ADDRESS}",
            f"--secure-port={API_PORT}",
            f"--tls-cert-file={keys.server_certificate}",
            f"--tls-private-key-file={keys.server_key}",
            f"--cert-dir={self.places.run / 'apiserver'}",
            f"--token-auth-file={keys.tokens}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={keys.service_account_key}",
            f"--service-account-signing-key-file={keys.service_account_key}",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",
            # Pods of a lost node are replaced within a test's patience.
            "--default-not-ready-toleration-seconds=20",
            "--default-unreachable-toleration-seconds=20",
        ]
        return self._component("kube-apiserver", flags)

    @property
    def controller_manager(self) -> Daemon:
        flags = [
            *self._credentials(identities.CONTROLLER_MANAGER),
            f"--root-ca-file={self.keys.authority}",
            f"--service-account-private-key-file={self.keys.service_account_key}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--node-monitor-grace-period=20s",
            "--node-monitor-period=2s",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.places.run / 'controller-manager'}",
        ]
        return self._component("kube-controller-manager", flags)

    @property
    def scheduler(self) -> Daemon:
        flags = [
            *self._credentials(identities.SCHEDULER),
            "--leader-elect=false",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.places.run / 'scheduler'}",
        ]
        return self._component("kube-scheduler", flags)

    @property
    def proxy(self) -> Daemon:
        """One for both nodes: they share the host's network."""
        flags = [
            f"--kubeconfig={self.keys.kubeconfig(identities.PROXY)}",
            "--proxy-mode=iptables",
            f"--cluster-cidr={POD_NETWORK}",
            f"--hostname-override={NODES[0].name}",
            "--conntrack-max-per-core=0",  # the sysctl is refused on a machine like this
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
            "--healthz-bind-address=127.0.0.1:10256",
            "--metrics-bind-address=127.0.0.1:10249",
        ]
        return self._component("kube-proxy", flags)

    def daemons(self) -> list[Daemon]:
        """In the order in which they are started."""
        return [self.etcd, self.api_server, self.controller_manager, self.scheduler, self.proxy]

    def wait_ready(self, timeout: float = READY_TIMEOUT_S) -> None:
        """Until the API server says that it is ready."""
        deadline = time.monotonic() + timeout
        while not self.ready():
            if not self.api_server.alive() or time.monotonic() > deadline:
                raise ProcessError(f"the API server is not ready:\n{self.api_server.tail()}")
            time.sleep(0.1)

    def ready(self) -> bool:
        trust = ssl.create_default_context(cafile=str(self.keys.authority))
        try:
            with urllib.request.urlopen(f"{identities.SERVER}/readyz", timeout=2, context=trust) as answer:
                return int(answer.status) == 200
        except (urllib.error.URLError, OSError):
            return False

    def _credentials(self, identity: identities.Identity) -> list[str]:
        path = self.keys.kubeconfig(identity)
        return [f"--{purpose}kubeconfig={path}" for purpose in ("", "authentication-", "authorization-")]

    def _component(self, name: str, flags: list[str]) -> Daemon:
        return self._daemon(name, [self.binaries.component(name), *flags])

    def _daemon(self, name: str, command: list[str | Path]) -> Daemon:
        pid_file = self.places.run / "pids" / name
        return Daemon(name=name, command=command, pid_file=pid_file, log=self.places.logs / f"{name}.log")
