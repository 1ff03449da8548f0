"""Who may speak to the API server: a certificate authority, the server's certificate, and one token for each identity.

Written fresh into the run folder by each `up`; nothing here outlives the cluster. Identities that no longer exist after
`down` need no care.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.settings import API_ADDRESS, API_PORT, API_SERVICE_ADDRESS, NODES, Node

SERVER = f"https://{API_ADDRESS}:{API_PORT}"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user of the API server, as RBAC's own bootstrap roles know it."""

    user: str
    groups: tuple[str, ...] = ()


ADMIN = Identity("admin", ("system:masters",))
CONTROLLER_MANAGER = Identity("system:kube-controller-manager")
SCHEDULER = Identity("system:kube-scheduler")
PROXY = Identity("system:kube-proxy")


def kubelet(node: Node) -> Identity:
    return Identity(f"system:node:{node.name}", ("system:nodes",))


@dataclass(frozen=True, slots=True)
class Keys:
    """Files below one folder."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def server_certificate(self) -> Path:
        return self.folder / "apiserver.crt"

    @property
    def server_key(self) -> Path:
        return self.folder / "apiserver.key"

    @property
    def service_account_key(self) -> Path:
        return self.folder / "service-accounts.key"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens.csv"

    def kubeconfig(self, identity: Identity) -> Path:
        return self.folder / f"{identity.user.replace(':', '-')}.kubeconfig"


def make_keys(folder: Path) -> Keys:
    """All of them, once."""
    keys = Keys(folder)
    if keys.tokens.exists():
        return keys
    folder.mkdir(parents=True, exist_ok=True)
    _make_certificates(keys)
    identities = [ADMIN, CONTROLLER_MANAGER, SCHEDULER, PROXY, *(kubelet(node) for node in NODES)]
    lines = []
    for number, identity in enumerate(identities):
        token = secrets.token_hex(24)
        groups = ",".join(identity.groups)
        lines.append(f'{token},{identity.user},{number},"{groups}"')
        _write(keys.kubeconfig(identity), json.dumps(_kubeconfig(keys, identity, token)))
    _write(keys.tokens, "\n".join(lines) + "\n")
    return keys


def _make_certificates(keys: Keys) -> None:
    names = f"IP:{API_ADDRESS},IP:{API_SERVICE_ADDRESS},IP:127.0.0.1,DNS:kubernetes.default.svc"
    extensions = f"subjectAltName={names}\nextendedKeyUsage=serverAuth\nauthorityKeyIdentifier=keyid\n"
    (keys.folder / "apiserver.ext").write_text(extensions)
    elliptic = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    authority = "-out ca.crt -keyout ca.key -subj /CN=octavo-test-cluster -days 365"
    server = "-out apiserver.csr -keyout apiserver.key -subj /CN=apiserver"
    signing = "-CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile apiserver.ext"
    for arguments in (
        f"req -x509 {elliptic} {authority} -addext keyUsage=critical,keyCertSign,cRLSign",
        f"req -new {elliptic} {server}",
        f"x509 -req -in apiserver.csr -out apiserver.crt {signing}",
        "genrsa -out service-accounts.key 2048",
    ):
        run(["openssl", *arguments.split()], cwd=keys.folder)


def _kubeconfig(keys: Keys, identity: Identity, token: str) -> Mapping[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "octavo", "cluster": {"server": SERVER, "certificate-authority": str(keys.authority)}}],
        "users": [{"name": identity.user, "user": {"token": token}}],
        "contexts": [{"name": "octavo", "context": {"cluster": "octavo", "user": identity.user}}],
        "current-context": "octavo",
    }


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
