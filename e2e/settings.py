"""What the suite runs against: the test cluster of this machine, or any cluster that `KUBECONFIG` names.

| variable | what it is | default |
|---|---|---|
| KUBECONFIG | the cluster | the one of `make cluster` |
| OCTAVO_E2E_RUNTIME_IMAGE, OCTAVO_E2E_OPERATOR_IMAGE | images that its nodes can pull | those given to the test cluster |
| OCTAVO_E2E_MIRROR | URL of a hub mirror that pods reach, with SmolLM2-135M-Instruct | one on this machine |
| OCTAVO_E2E_INSTALLED | any text: an operator runs already, and is left as it is | empty |
| OCTAVO_E2E_RECORD | any text: keep the statuses that the story of Git sees, for the unit tests of Argo CD's script | empty |
| OCTAVO_E2E_KEEP | any text: leave the operator and the namespaces of failed tests for a look | empty |
"""

import os
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.images import read_images
from e2e.cluster.settings import Places, read_places


@dataclass(frozen=True, slots=True)
class Settings:
    """One value for the whole run."""

    places: Places
    kubeconfig: Path
    runtime_image: str
    operator_image: str
    mirror: str  # empty: the suite starts its own
    installed: bool
    keep: bool
    record: bool

    @property
    def on_test_cluster(self) -> bool:
        """Whether nodes and servers are ours to break."""
        return self.kubeconfig == self.places.kubeconfig

    @property
    def helm(self) -> str:
        built = self.places.root / "helm" / "helm"
        return str(built) if built.exists() else "helm"


class NoClusterError(RuntimeError):
    """There is nothing to run against; the message says how to get it."""


def read_settings() -> Settings:
    places = read_places()
    kubeconfig = Path(os.environ.get("KUBECONFIG") or places.kubeconfig)
    if not kubeconfig.exists():
        raise NoClusterError(f"no cluster: {kubeconfig} is not there; run `make cluster`, or set KUBECONFIG")
    runtime, operator = os.environ.get("OCTAVO_E2E_RUNTIME_IMAGE"), os.environ.get("OCTAVO_E2E_OPERATOR_IMAGE")
    if not (runtime and operator):
        if not places.images_file.exists():
            raise NoClusterError(
                "no images: run `make cluster`, or set OCTAVO_E2E_RUNTIME_IMAGE and OCTAVO_E2E_OPERATOR_IMAGE"
            )
        built = read_images(places)
        runtime, operator = runtime or built.runtime, operator or built.operator
    return Settings(
        places=places,
        kubeconfig=kubeconfig,
        runtime_image=runtime,
        operator_image=operator,
        mirror=os.environ.get("OCTAVO_E2E_MIRROR", "").rstrip("/"),
        installed=bool(os.environ.get("OCTAVO_E2E_INSTALLED")),
        keep=bool(os.environ.get("OCTAVO_E2E_KEEP")),
        record=bool(os.environ.get("OCTAVO_E2E_RECORD")),
    )
