"""What the webhook refuses, and that it says what to write instead."""

from typing import Any

import pytest

from octavo_operator.admission import objection
from octavo_operator.effective import RenderDefaults
from octavo_operator.testing import llm_deployment

DEFAULTS = RenderDefaults(image="octavo-runtime:1", operator_version="1")


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"engine": {"device": "cuda", "tensorParallelSize": 4}, "resources": {"memory": "64Gi"}},
        {"model": {"uri": "pvc://weights/llama"}},
        {"model": {"uri": "https://host/model.gguf"}},
        {"cache": {"mode": "SharedPVC", "sharedPVC": {"size": "20Gi"}}},
        {"pod": {"patch": {"spec": {"hostNetwork": True}}}},
    ],
)
def test_a_spec_that_can_be_rendered_is_let_through(spec: dict[str, Any]) -> None:
    assert objection(llm_deployment(**spec), DEFAULTS) == ""


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resources": {"memory": "plenty"}}, "spec.resources.memory"),
        ({"engine": {"blockSize": "many"}}, "blockSize"),
        ({"scaling": {"mode": "Auto"}}, "spec.scaling.auto"),
        ({"pod": {"labels": {"octavo.dev/revision": "mine"}}}, "spec.pod.labels"),
        ({"cache": {"mode": "SharedPVC", "sharedPVC": {"size": "some"}}}, "spec.cache.sharedPVC.size"),
    ],
)
def test_a_spec_that_nothing_could_make_right_is_refused_with_its_field(spec: dict[str, Any], field: str) -> None:
    assert field in objection(llm_deployment(**spec), DEFAULTS)


def test_a_new_object_has_no_uid_yet() -> None:
    raw = llm_deployment()
    del raw["metadata"]["uid"]
    assert objection(raw, DEFAULTS) == ""
    assert "uid" not in raw["metadata"]
