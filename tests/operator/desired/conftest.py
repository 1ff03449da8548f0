"""One LLMDeployment rendered the whole way, and golden files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from octavo_operator.api import LLMDeployment, parse
from octavo_operator.desired.pod_template import pod_template
from octavo_operator.effective import Effective, RenderDefaults, decide
from octavo_operator.observed import ClusterView, NodeView
from octavo_operator.quantity import GIB
from octavo_operator.sizing import Sizing, size
from octavo_operator.weights import Weights

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB_MODEL = {"uri": "hf://acme/small-1b"}
GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Rendered:
    """Every stage of one render."""

    deployment: LLMDeployment
    effective: Effective
    sizing: Sizing
    weights: Weights
    defaults: RenderDefaults
    template: dict[str, Any]

    @property
    def pod(self) -> dict[str, Any]:
        return self.template["spec"]

    @property
    def container(self) -> dict[str, Any]:
        return next(container for container in self.pod["containers"] if container["name"] == "octavo")

    @property
    def environment(self) -> dict[str, dict[str, Any]]:
        return {variable["name"]: variable for variable in self.container["env"]}


def deployment_of(spec: dict[str, Any]) -> LLMDeployment:
    raw = {
        "metadata": {"name": "small", "namespace": "models", "uid": "11111111-2222-3333-4444-555555555555"},
        "spec": {"model": HUB_MODEL} | spec,
    }
    return parse(raw)


def render_one(spec: dict[str, Any], gpus: int = 0, **changed: Any) -> Rendered:
    """`gpus`: of the only node; `changed`: fields of the defaults, or `weights`."""
    weights = changed.pop("weights", Weights(COMMIT, 2 * GIB))
    defaults = RenderDefaults(
        **{"image": "registry.example/octavo-runtime:1.0.0", "operator_version": "1.0.0"} | changed
    )
    node = NodeView("node-1", True, {}, (), {"cpu": 64000, "nvidia.com/gpu": gpus}, {})
    deployment = deployment_of(spec)
    effective = decide(deployment, ClusterView(nodes=(node,)), defaults)
    sizing = size(deployment, effective, weights, defaults)
    template = pod_template(deployment, effective, sizing, weights, defaults)
    return Rendered(deployment, effective, sizing, weights, defaults, template)


@pytest.fixture
def deployment() -> Callable[..., LLMDeployment]:
    """`deployment(replicas=2)`: a resource with these fields of the spec."""
    return lambda **spec: deployment_of(spec)


@pytest.fixture
def render() -> Callable[..., Rendered]:
    """`render({"replicas": 2}, gpus=8)`."""
    return render_one


@pytest.fixture
def golden() -> Callable[[str, Sequence[Any]], None]:
    """Compares with golden/<name>.yaml. A file that is not there is written, and the test fails so that it is read."""

    def compare(name: str, manifests: Sequence[Any]) -> None:
        path = GOLDEN / f"{name}.yaml"
        text = yaml.safe_dump_all(manifests, width=110, explicit_start=True)
        if not path.exists():
            path.write_text(text)
            pytest.fail(f"{path.name} was written; read it, then run again")
        assert text == path.read_text()

    return compare
