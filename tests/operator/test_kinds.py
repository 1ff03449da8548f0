"""The table of kinds: paths and verbs."""

import pytest

from octavo_operator.api import GROUP, KIND, PLURAL, VERSION
from octavo_operator.kinds import KINDS, OURS, WATCHED


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "subresource", "path"),
    [
        ("Pod", "team", "a", "", "/api/v1/namespaces/team/pods/a"),
        ("Pod", None, "", "", "/api/v1/pods"),
        ("Node", None, "n", "", "/api/v1/nodes/n"),
        ("Node", "ignored", "n", "", "/api/v1/nodes/n"),
        ("Deployment", "team", "d", "", "/apis/apps/v1/namespaces/team/deployments/d"),
        ("LLMDeployment", "t", "x", "status", "/apis/octavo.dev/v1alpha1/namespaces/t/llmdeployments/x/status"),
    ],
)
def test_paths_are_those_of_the_api_server(
    kind: str, namespace: str | None, name: str, subresource: str, path: str
) -> None:
    assert KINDS[kind].path(namespace, name, subresource) == path


def test_the_resource_is_the_one_that_api_py_names_and_only_its_status_is_written() -> None:
    kind = KINDS[KIND]
    assert (kind.group, kind.version, kind.plural) == (GROUP, VERSION, PLURAL)
    assert kind.permits("patch", "status")
    assert not any(kind.permits(verb) for verb in ("create", "patch", "update", "delete"))
    assert not kind.permits("patch", "scale")


def test_what_we_make_is_watched_by_our_label_only() -> None:
    assert OURS == "app.kubernetes.io/managed-by=octavo-operator"
    made = [kind for kind in WATCHED if "create" in kind.verbs and kind.name not in ("Secret", "PersistentVolumeClaim")]
    assert {kind.labels for kind in made} == {OURS}


def test_nobody_elses_objects_are_deleted() -> None:
    untouchable = ("Secret", "ConfigMap", "PersistentVolumeClaim", "Node", "ResourceQuota", "StorageClass")
    assert not any(KINDS[name].permits("delete") for name in untouchable)
