"""Where the test cluster keeps its things and which addresses it uses: frozen values, read from the environment once.

`OCTAVO_CACHE` (default ~/.cache/octavo) is the only variable. Below it `cluster/` holds what is built once (binaries, base
images, image layers, the nodes' image stores) and `cluster/run/` what lives only while the cluster runs.
"""

import os
from dataclasses import dataclass
from pathlib import Path

KUBERNETES_VERSION = "1.35.4"
HELM_MODULE = "helm.sh/helm/v4/cmd/helm@v4.3.1"

API_ADDRESS = "10.245.0.1"
API_PORT = 6443
ETCD_PORT = 12379
HOST_NETWORK = "10.245.0.0/16"
POD_NETWORK = "10.244.0.0/16"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
IMAGE_DOMAIN = "octavo.local"


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the cluster: its number makes its name and its addresses."""

    number: int

    @property
    def name(self) -> str:
        return f"node{self.number}"

    @property
    def address(self) -> str:
        return f"10.245.0.{self.number + 1}"

    @property
    def pod_subnet(self) -> str:
        return f"10.244.{self.number}.0/24"

    @property
    def bridge(self) -> str:
        return f"oct{self.number}"


NODES = (Node(1), Node(2))


@dataclass(frozen=True, slots=True)
class Places:
    """Every path of the cluster."""

    cache: Path  # all of Octavo's caches
    checkout: Path

    @property
    def root(self) -> Path:
        return self.cache / "cluster"

    @property
    def run(self) -> Path:
        """Gone after `down`."""
        return self.root / "run"

    @property
    def logs(self) -> Path:
        """Kept until the next `up`: a failed run is looked at afterwards."""
        return self.root / "logs"

    @property
    def kubeconfig(self) -> Path:
        return self.run / "kubeconfig"

    @property
    def images_file(self) -> Path:
        """Names of the images that the nodes have."""
        return self.root / "images.json"

    def node_run(self, node: Node) -> Path:
        return self.run / node.name

    def node_store(self, node: Node) -> Path:
        """containerd's root: images outlive the cluster, so that the next `up` need not import them again."""
        return self.root / "stores" / node.name

    def containerd_socket(self, node: Node) -> Path:
        return self.node_run(node) / "containerd.sock"


def read_places() -> Places:
    """The places of this machine and checkout."""
    cache = Path(os.environ.get("OCTAVO_CACHE") or Path.home() / ".cache" / "octavo").resolve()
    return Places(cache=cache, checkout=Path(__file__).resolve().parents[2])


def pip_options() -> dict[str, str]:
    """pip's settings of this machine (PIP_CERT and so on) as lines of a pip.conf, for builds inside images."""
    prefix = "PIP_"
    return {
        name.removeprefix(prefix).lower().replace("_", "-"): value
        for name, value in os.environ.items()
        if name.startswith(prefix) and value and name != "PIP_FIND_LINKS"  # a folder that images have not
    }


def child_environment(**extra: str) -> dict[str, str]:
    """This environment without what would leak our own Python into a child, plus `extra`."""
    ours = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONSAFEPATH", "KUBECONFIG"}
    return {name: value for name, value in os.environ.items() if name not in ours} | extra
