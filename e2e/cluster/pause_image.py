"""The image of the pause container, made from the program built beside Kubernetes; no registry is asked for it."""

from e2e.cluster.binaries import Binaries
from e2e.cluster.node import PAUSE_IMAGE, NodeProcesses
from e2e.cluster.oci import single_binary
from e2e.cluster.waiting import retry


def import_pause(node: NodeProcesses, binaries: Binaries) -> None:
    """Give it to a node whose containerd has just been started."""
    names = retry(lambda: node.ctr("images", "list", "--quiet").split(), "containerd to answer")
    if PAUSE_IMAGE not in names:
        node.ctr("images", "import", "-", stdin=single_binary(PAUSE_IMAGE, binaries.pause.resolve()))
