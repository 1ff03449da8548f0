"""The Debian packages that the cluster is made of: installed when one of their programs is missing.

Needs root and apt; on another system install the programs by hand and nothing is done here.
"""

import shutil
from collections.abc import Mapping

from e2e.cluster.commands import run
from e2e.cluster.progress import say
from e2e.cluster.settings import child_environment

# A file of each package that tells whether it is there.
PROGRAMS: Mapping[str, str] = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "setsid": "util-linux",
    "openssl": "openssl",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
}
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def missing_packages() -> list[str]:
    return sorted({package for program, package in PROGRAMS.items() if not _is_there(program)})


def install_packages() -> None:
    """Install what is missing, and nothing that is only recommended."""
    missing = missing_packages()
    if not missing:
        return
    say(f"installing Debian packages: {' '.join(missing)}")
    # No service may start by itself: the cluster runs its own containerd and etcd.
    environment = child_environment(DEBIAN_FRONTEND="noninteractive", RUNLEVEL="1", SYSTEMD_OFFLINE="1")
    run(["apt-get", "update", "-qq"], environment=environment)
    options = ["-y", "-qq", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold"]
    run(["apt-get", "install", *options, *missing], environment=environment)


def _is_there(program: str) -> bool:
    return shutil.which(program, path=SEARCH_PATH) is not None
