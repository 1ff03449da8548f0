"""An API server of the benchmark's own: etcd, kube-apiserver, and of the controllers those that make pods from Deployments.

Ports are free ones, everything is in one folder, and all of it ends with the block: a cluster that runs beside it notices
nothing. The binaries are those of the test cluster (`python -m e2e.cluster up` builds them).
"""

import json
import secrets
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.serving.environment import cache_folder, child_environment

CONTROLLERS = "deployment-controller,replicaset-controller"
READY_SECONDS = 60.0
END_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running API server: how to reach it, and the processes behind it."""

    url: str
    token: str
    authority: Path
    kubeconfig: Path
    pids: dict[str, int]


@contextmanager
def start_control_plane(folder: Path) -> Iterator[ControlPlane]:
    """For as long as the block lasts; logs and data are below `folder`."""
    binaries = cache_folder() / "cluster" / "kubernetes"
    if not (binaries / "kube-apiserver").exists():
        raise SystemExit(f"{binaries} has no kube-apiserver; `PYTHONPATH=. python -m e2e.cluster up` builds it")
    etcd, peer, port = free_ports(3)
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f'{token},admin,0,"system:masters"\n')
    key = folder / "service-accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    url, authority = f"https://127.0.0.1:{port}", folder / "certificates" / "apiserver.crt"
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(url, token, authority)))
    with ExitStack() as stack:
        pids = {"etcd": stack.enter_context(daemon(folder, _etcd(folder, etcd, peer))).pid}
        server = stack.enter_context(daemon(folder, _api_server(binaries, folder, etcd, port)))
        pids["kube-apiserver"] = server.pid
        _wait_ready(url, authority, server, folder)
        manager: list[str | Path] = [binaries / "kube-controller-manager", *_manager_flags(kubeconfig)]
        pids["kube-controller-manager"] = stack.enter_context(daemon(folder, manager)).pid
        yield ControlPlane(url, token, authority, kubeconfig, pids)


@contextmanager
def daemon(
    folder: Path, command: Sequence[str | Path], environment: dict[str, str] | None = None, name: str = ""
) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that ends with the block; its output is in `folder`."""
    words = [str(word) for word in command]
    log = folder / f"{name or Path(words[0]).name}.log"
    with (
        log.open("ab") as output,
        subprocess.Popen(words, stdout=output, stderr=output, env=child_environment(environment)) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody uses now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _etcd(folder: Path, port: int, peer: int) -> list[str | Path]:
    own, others = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return [
        "etcd",
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",  # the disk of the machine is not what is measured
        "--logger=zap",
        f"--listen-client-urls={own}",
        f"--advertise-client-urls={own}",
        f"--listen-peer-urls={others}",
        f"--initial-advertise-peer-urls={others}",
        f"--initial-cluster=default={others}",
    ]


def _api_server(binaries: Path, folder: Path, etcd: int, port: int) -> list[str | Path]:
    key = folder / "service-accounts.key"
    return [
        binaries / "kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'certificates'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-cluster-ip-range=10.80.0.0/16",
        "--allow-privileged=true",
    ]


def _manager_flags(kubeconfig: Path) -> list[str]:
    return [
        *(f"--{purpose}kubeconfig={kubeconfig}" for purpose in ("", "authentication-", "authorization-")),
        f"--controllers={CONTROLLERS}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def _kubeconfig(url: str, token: str, authority: Path) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "scale", "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "scale", "context": {"cluster": "scale", "user": "admin"}}],
        "current-context": "scale",
    }


def _wait_ready(url: str, authority: Path, server: "subprocess.Popen[bytes]", folder: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not _is_ready(url, authority):
        if server.poll() is not None or time.monotonic() > deadline:
            tail = (folder / "kube-apiserver.log").read_text(errors="replace")[-3000:]
            raise SystemExit(f"the API server is not ready:\n{tail}")
        time.sleep(0.2)


def _is_ready(url: str, authority: Path) -> bool:
    if not authority.exists():
        return False
    try:
        trust = ssl.create_default_context(cafile=str(authority))
        with urllib.request.urlopen(f"{url}/readyz", timeout=2, context=trust) as answer:
            return int(answer.status) == 200
    except (urllib.error.URLError, OSError):
        return False
