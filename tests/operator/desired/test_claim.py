"""The claim for weights."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.desired.claim import claim
from octavo_operator.spec_problem import SpecProblem


def cache(**shared: Any) -> dict[str, Any]:
    return {"mode": "SharedPVC", "sharedPVC": shared}


def test_many_nodes_may_mount_it_and_the_default_class_makes_it(deployment: Callable[..., Any]) -> None:
    made = claim(deployment(cache=cache(size="50Gi")))
    assert made["metadata"]["name"] == "small-cache"
    assert made["spec"] == {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "50Gi"}}}


def test_what_is_given_stands(deployment: Callable[..., Any]) -> None:
    shared = cache(size=1 << 30, storageClassName="fast", accessMode="ReadWriteOnce")
    spec = claim(deployment(cache=shared))["spec"]
    assert (spec["storageClassName"], spec["accessModes"]) == ("fast", ["ReadWriteOnce"])
    assert spec["resources"]["requests"]["storage"] == "1Gi"


@pytest.mark.parametrize("shared", [{}, {"size": "much"}])
def test_a_claim_without_a_size_is_refused_by_name(shared: dict[str, Any], deployment: Callable[..., Any]) -> None:
    with pytest.raises(SpecProblem) as caught:
        claim(deployment(cache=cache(**shared)))
    assert caught.value.field == "spec.cache.sharedPVC.size"
