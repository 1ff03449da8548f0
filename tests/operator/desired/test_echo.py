"""What a person is shown of the settings in force."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.desired.echo import echo


@pytest.fixture
def shown(render: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    def make(spec: dict[str, Any], **options: Any) -> dict[str, Any]:
        rendered = render(spec, **options)
        made = echo(rendered.deployment, rendered.effective, rendered.sizing, rendered.weights)
        assert made["engineArgs"] == rendered.container["args"]
        return made

    return make


def test_defaults_are_shown(shown: Callable[..., dict[str, Any]]) -> None:
    found = shown({})
    del found["engineArgs"]
    assert found == {
        "device": "cpu",
        "gpuMemoryUtilization": 0.9,
        "gpusPerReplica": 0,
        "image": "registry.example/octavo-runtime:1.0.0",
        "maxModelLen": "auto",
        "strategy": "Auto",
    }


def test_choices_are_shown(shown: Callable[..., dict[str, Any]]) -> None:
    engine = {"tensorParallelSize": 4, "maxModelLen": 4096, "image": "mine:1"}
    found = shown({"engine": engine, "rollout": {"strategy": "InPlace"}}, gpus=8)
    assert (found["device"], found["gpusPerReplica"], found["maxModelLen"]) == ("cuda", 4, 4096)
    assert (found["image"], found["strategy"]) == ("mine:1", "InPlace")
