"""Raw objects, read into frozen values; or an error that names the field."""

import pytest

from octavo_operator.api import SpecError, parse
from octavo_operator.testing import llm_deployment


def test_four_lines_are_enough() -> None:
    deployment = parse(llm_deployment())
    assert (deployment.namespace, deployment.name, deployment.generation) == ("default", "smollm", 1)
    assert deployment.spec.model.uri == "hf://HuggingFaceTB/SmolLM2-135M-Instruct"


def test_what_is_left_out_stays_open() -> None:
    spec = parse(llm_deployment()).spec
    assert spec.replicas is None
    assert spec.engine.device is None
    assert spec.rollout.strategy is None
    assert spec.scaling.auto is None


def test_camel_case_names_are_the_fields() -> None:
    spec = parse(
        llm_deployment(
            cache={"mode": "SharedPVC", "sharedPVC": {"claimName": "models"}},
            access={"apiKeys": {"secretSelector": {"team": "a"}}},
            rollout={"drain": {"timeoutSeconds": 5}},
        )
    ).spec
    assert spec.cache.shared_pvc is not None
    assert spec.cache.shared_pvc.claim_name == "models"
    assert spec.access.api_keys is not None
    assert spec.rollout.drain.timeout_seconds == 5


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"engine": {"blockSize": "sixteen"}}, "spec.engine.blockSize"),
        ({"replicas": -0.5}, "spec.replicas"),
        ({"scaling": {"mode": "Sometimes"}}, "spec.scaling.mode"),
        ({"model": {}}, "spec.model"),
        ({"pod": {"tolerations": "all"}}, "spec.pod.tolerations"),
    ],
)
def test_a_wrong_value_is_named_by_its_path(spec: dict[str, object], field: str) -> None:
    with pytest.raises(SpecError, match=field.replace(".", r"\.")):
        parse(llm_deployment(**spec))


def test_unknown_fields_are_passed_over() -> None:
    """The API server prunes what the CRD does not know; a newer CRD may know more than this operator."""
    assert parse(llm_deployment(canary={"weight": 10})).spec.replicas is None
