"""The Deployment of a revision."""

from collections.abc import Callable
from typing import Any

from octavo_operator.desired.workload import workload

TEMPLATE = {"metadata": {"labels": {}}, "spec": {}}


def test_replicas_are_sent_only_when_they_are_given(deployment: Callable[..., Any]) -> None:
    assert workload(deployment(), "0123456789", TEMPLATE, 3)["spec"]["replicas"] == 3
    assert workload(deployment(), "0123456789", TEMPLATE, 0)["spec"]["replicas"] == 0
    assert "replicas" not in workload(deployment(), "0123456789", TEMPLATE, None)["spec"]


def test_selector_names_the_revision_and_not_whether_a_pod_is_routed(deployment: Callable[..., Any]) -> None:
    made = workload(deployment(), "0123456789", TEMPLATE, 1)
    assert made["metadata"]["name"] == "small-0123456789"
    assert made["spec"]["selector"]["matchLabels"] == {
        "octavo.dev/deployment": "small",
        "octavo.dev/component": "server",
        "octavo.dev/revision": "0123456789",
    }


def test_a_restart_by_hand_takes_one_pod_after_the_other_and_no_gpu_more(deployment: Callable[..., Any]) -> None:
    strategy = workload(deployment(), "0123456789", TEMPLATE, 1)["spec"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def test_kubernetes_own_deadline_is_off(deployment: Callable[..., Any]) -> None:
    assert workload(deployment(), "0123456789", TEMPLATE, 1)["spec"]["progressDeadlineSeconds"] == 2**31 - 1


def test_the_template_is_the_stored_one(render: Callable[..., Any]) -> None:
    rendered = render({})
    made = workload(rendered.deployment, "0123456789", rendered.template, 1)
    assert made["spec"]["template"] == rendered.template
    selector = workload(
        rendered.deployment, rendered.template["metadata"]["labels"]["octavo.dev/revision"], rendered.template, 1
    )["spec"]["selector"]["matchLabels"]
    assert selector.items() <= rendered.template["metadata"]["labels"].items()
