"""spec.pod over the operator's own pod: everything is possible but what would break it."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.spec_problem import SpecProblem


def test_typed_fields_reach_the_pod(render: Callable[..., Any]) -> None:
    pod = {
        "env": [{"name": "A", "value": "1"}],
        "labels": {"team": "a"},
        "annotations": {"note": "b"},
        "nodeSelector": {"zone": "c"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "serviceAccountName": "mine",
    }
    rendered = render({"pod": pod})
    assert rendered.environment["A"]["value"] == "1"
    assert rendered.template["metadata"]["labels"]["team"] == "a"
    assert rendered.template["metadata"]["annotations"] == {"note": "b"}
    assert rendered.pod["nodeSelector"] == {"zone": "c"}
    assert rendered.pod["tolerations"] == [{"key": "spot", "operator": "Exists"}]
    assert rendered.pod["serviceAccountName"] == "mine"


def test_the_users_variable_goes_before_the_operators(render: Callable[..., Any]) -> None:
    rendered = render({"pod": {"env": [{"name": "HF_HOME", "value": "/elsewhere"}]}})
    assert rendered.environment["HF_HOME"] == {"name": "HF_HOME", "value": "/elsewhere"}
    names = [variable["name"] for variable in rendered.container["env"]]
    assert len(names) == len(set(names))


def test_a_patch_has_the_last_word(render: Callable[..., Any]) -> None:
    patch = {
        "metadata": {"labels": {"team": "b"}},
        "spec": {
            "containers": [
                {"name": "octavo", "resources": {"requests": {"cpu": "7"}}},
                {"name": "side", "image": "side:1"},
            ],
            "volumes": [{"name": "cache", "persistentVolumeClaim": {"claimName": "fast"}}],
            "runtimeClassName": "nvidia",
        },
    }
    rendered = render({"pod": {"labels": {"team": "a"}, "patch": patch}})
    assert rendered.template["metadata"]["labels"]["team"] == "b"
    assert rendered.container["resources"]["requests"]["cpu"] == "7"
    assert rendered.container["resources"]["requests"]["memory"]
    assert [container["name"] for container in rendered.pod["containers"]] == ["octavo", "side"]
    assert {"name": "cache", "persistentVolumeClaim": {"claimName": "fast"}} in rendered.pod["volumes"]
    assert rendered.pod["runtimeClassName"] == "nvidia"


OCTAVO = {"name": "octavo"}


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        ({"labels": {"octavo.dev/routed": "false"}}, "spec.pod.labels[octavo.dev/routed]"),
        ({"labels": {"app.kubernetes.io/managed-by": "me"}}, "spec.pod.labels[app.kubernetes.io/managed-by]"),
        ({"annotations": {"octavo.dev/drain-started-at": "x"}}, "spec.pod.annotations[octavo.dev/drain-started-at]"),
        ({"env": [{"value": "x"}]}, "spec.pod.spec.containers[0].env[0]"),
        ({"patch": {"kind": "Pod"}}, "spec.pod.patch.kind"),
        ({"patch": {"spec": 1}}, "spec.pod.patch.spec"),
        ({"patch": {"metadata": {"name": "x"}}}, "spec.pod.patch.metadata.name"),
        ({"patch": {"metadata": {"labels": {"octavo.dev/x": "y"}}}}, "spec.pod.patch.metadata.labels[octavo.dev/x]"),
        ({"patch": {"metadata": {"labels": None}}}, "spec.pod.patch.metadata.labels"),
        ({"patch": {"metadata": None}}, "spec.pod.patch.metadata.labels"),
        ({"patch": {"spec": {"$patch": "replace"}}}, "spec.pod.patch.spec.containers"),
        ({"patch": {"spec": {"containers": None}}}, "spec.pod.patch.spec.containers"),
        ({"patch": {"spec": {"containers": "x"}}}, "spec.pod.patch.spec.containers"),
        ({"patch": {"spec": {"containers": [OCTAVO | {"$patch": "delete"}]}}}, "spec.pod.patch.spec.containers"),
        ({"patch": {"spec": {"containers": [OCTAVO | {"ports": None}]}}}, "spec.pod.patch.spec.containers"),
        ({"patch": {"spec": {"containers": [{"image": "x"}]}}}, "spec.pod.patch.spec.containers[0]"),
        ({"patch": {"spec": {"containers": [OCTAVO | {"image": None}]}}}, "spec.pod.patch.spec.containers"),
        ({"patch": {"spec": {"containers": [{"name": "side", "image": ""}]}}}, "spec.pod.patch.spec.containers"),
    ],
)
def test_what_would_break_the_operator_is_refused_by_name(
    pod: dict[str, Any], field: str, render: Callable[..., Any]
) -> None:
    with pytest.raises(SpecProblem) as caught:
        render({"pod": pod})
    assert caught.value.field == field
    assert caught.value.message.endswith(".")


@pytest.mark.parametrize(
    ("kind", "what"), [("containers", 'a container "server"'), ("initContainers", 'an init container "server"')]
)
def test_a_wrong_name_is_told_as_a_container_without_an_image_with_the_right_one(
    kind: str, what: str, render: Callable[..., Any]
) -> None:
    patch = {"spec": {kind: [{"name": "server", "env": [{"name": "A", "value": "1"}]}]}}
    with pytest.raises(SpecProblem) as caught:
        render({"pod": {"patch": patch}})
    assert caught.value.field == f"spec.pod.patch.spec.{kind}"
    assert caught.value.message == f"adds {what} without an image; the serving container is called octavo."


def test_a_container_of_ones_own_is_welcome_with_its_image(render: Callable[..., Any]) -> None:
    own = {"name": "server", "image": "mine:1"}
    rendered = render({"pod": {"patch": {"spec": {"containers": [own], "initContainers": [own]}}}})
    assert own in rendered.pod["containers"]
    assert own in rendered.pod["initContainers"]


SECRET = "hf_" + "a1B2c3D4" * 4


@pytest.mark.parametrize(
    "variable",
    [
        {"name": "HF_TOKEN", "value": "x"},
        {"name": "MY_API_KEY", "value": "x"},
        {"name": "db_password", "value": "x"},
        {"name": "PLAIN", "value": SECRET},
    ],
)
@pytest.mark.parametrize("place", ["env", "containers", "initContainers"])
def test_a_literal_secret_is_refused_and_not_repeated(
    variable: dict[str, str], place: str, render: Callable[..., Any]
) -> None:
    container = {"name": "side", "env": [variable]}
    pod = {"env": [variable]} if place == "env" else {"patch": {"spec": {place: [container]}}}
    with pytest.raises(SpecProblem, match="secretKeyRef") as caught:
        render({"pod": pod})
    assert variable["name"] in caught.value.field
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        ({"annotations": {"note": SECRET}}, "spec.pod.annotations.note"),
        ({"patch": {"metadata": {"annotations": {"note": SECRET}}}}, "spec.pod.patch.metadata.annotations.note"),
        (
            {"patch": {"spec": {"containers": [{"name": "octavo", "args": ["serve", f"--hf-token={SECRET}"]}]}}},
            "spec.pod.patch.spec.containers[0].args[1]",
        ),
        (
            {"patch": {"spec": {"containers": [{"name": "side", "command": ["sh", "-c", f"login {SECRET}"]}]}}},
            "spec.pod.patch.spec.containers[0].command[2]",
        ),
    ],
)
def test_a_token_is_refused_wherever_it_stands(pod: dict[str, Any], field: str, render: Callable[..., Any]) -> None:
    with pytest.raises(SpecProblem, match="secretKeyRef") as caught:
        render({"pod": pod})
    assert caught.value.field == field
    assert SECRET not in str(caught.value)


def test_a_word_that_only_ends_like_a_token_is_none(render: Callable[..., Any]) -> None:
    args = ["serve", "/model", "--served-model-name", "task-with-a-rather-long-name-of-its-own"]
    patch = {"spec": {"containers": [{"name": "octavo", "args": args}]}}
    assert render({"pod": {"patch": patch}}).container["args"] == args


def test_a_secret_by_reference_is_welcome(render: Callable[..., Any]) -> None:
    source = {"secretKeyRef": {"name": "s", "key": "k"}}
    rendered = render({"pod": {"env": [{"name": "MY_TOKEN", "valueFrom": source}]}})
    assert rendered.environment["MY_TOKEN"]["valueFrom"] == source
