"""The cluster's part of this machine's network: one bridge with the host's and the nodes' addresses, and its routes.

The pods' bridges are made by the CNI plugin of each node. Every address of the cluster has a route to a bridge from the
first moment on, so that nothing sent to it can leave the machine.
"""

import socket
from pathlib import Path

from e2e.cluster.commands import run, succeeds
from e2e.cluster.settings import API_ADDRESS, HOST_NETWORK, NODES, POD_NETWORK, SERVICE_NETWORK

HOST_BRIDGE = "octhost"
SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    # Without it an answer between two pods of one bridge bypasses the Service's address translation.
    "net/bridge/bridge-nf-call-iptables": "1",
}


def make_network() -> None:
    if not succeeds(["ip", "link", "show", HOST_BRIDGE]):
        run(["ip", "link", "add", HOST_BRIDGE, "type", "bridge"])
    run(["ip", "link", "set", HOST_BRIDGE, "up"])
    for address in [API_ADDRESS, *(node.address for node in NODES)]:
        run(["ip", "address", "replace", f"{address}/32", "dev", HOST_BRIDGE])
    for network in (HOST_NETWORK, POD_NETWORK, SERVICE_NETWORK):
        run(["ip", "route", "replace", network, "dev", HOST_BRIDGE, "src", API_ADDRESS])
    for name, value in SYSCTLS.items():
        path = Path("/proc/sys") / name
        if path.exists():
            path.write_text(value)


def remove_network() -> None:
    """The bridges, and what the service proxy and the kubelets left in the packet filter (`kube-proxy --cleanup` leaves some)."""
    rules = run(["iptables-save"])
    if "KUBE-" in rules:
        kept = "".join(f"{line}\n" for line in rules.splitlines() if "KUBE-" not in line)
        run(["iptables-restore"], stdin=kept.encode())
    for bridge in [HOST_BRIDGE, *(node.bridge for node in NODES)]:
        if succeeds(["ip", "link", "show", bridge]):
            run(["ip", "link", "delete", bridge])


def free_port(address: str) -> int:
    """One that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])
