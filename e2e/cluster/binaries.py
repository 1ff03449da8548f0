"""The programs built from Go modules: Kubernetes (one binary with five names), pause, and helm.

Built once per hash of their sources into the cache. A cold build of Kubernetes takes most of ten minutes on two cores.
"""

from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.keyed import key_of, make_once
from e2e.cluster.progress import say
from e2e.cluster.settings import HELM_MODULE, KUBERNETES_VERSION, Places, child_environment

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet")


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where the built programs are."""

    folder: Path

    def component(self, name: str) -> Path:
        return self.folder / name

    @property
    def pause(self) -> Path:
        return self.folder / "pause"


def build_kubernetes(places: Places) -> Binaries:
    source = places.checkout / "e2e" / "cluster"
    inputs = [source / name for name in ("go.mod", "go.sum", "main.go", "pause")]

    def make(folder: Path) -> None:
        say(f"building Kubernetes {KUBERNETES_VERSION} from its Go module (minutes, once)")
        version = "k8s.io/component-base/version"
        major, minor, _ = KUBERNETES_VERSION.split(".")
        # Without them the server calls itself v0.0.0, and clients then leave features out.
        facts = {"gitVersion": f"v{KUBERNETES_VERSION}", "gitMajor": major, "gitMinor": minor}
        flags = " ".join(["-s", "-w", *(f"-X {version}.{name}={value}" for name, value in facts.items())])
        _go(["build", "-ldflags", flags, "-o", folder / "kubernetes", "."], source)
        _go(["build", "-ldflags", "-s -w", "-o", folder / "pause", "./pause"], source)
        for name in COMPONENTS:
            (folder / name).symlink_to("kubernetes")

    key = key_of([KUBERNETES_VERSION, *inputs])
    return Binaries(make_once(places.root / "kubernetes", key, make))


def build_helm(places: Places) -> Path:
    """Path of the `helm` program."""

    def make(folder: Path) -> None:
        say(f"building helm from {HELM_MODULE} (minutes, once)")
        _go(["install", "-ldflags", "-s -w", HELM_MODULE], folder, GOBIN=str(folder))

    return make_once(places.root / "helm", key_of([HELM_MODULE]), make) / "helm"


def _go(arguments: list[str | Path], folder: Path, **environment: str) -> None:
    # Lowest priority but one: other work on the machine comes first.
    command = ["nice", "-n", "10", "go", *arguments]
    run(command, cwd=folder, environment=child_environment(CGO_ENABLED="0", **environment))
