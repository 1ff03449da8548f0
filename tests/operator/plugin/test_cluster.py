"""What the verbs read, and how they say what is not there."""

from typing import Any

import pytest

from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.errors import PluginError
from octavo_operator.testing import FakeKube


async def test_a_wrong_name_says_how_to_find_the_right_one(cluster: Cluster) -> None:
    with pytest.raises(PluginError, match=r"no LLMDeployment llama; `kubectl get llmd -A`"):
        await cluster.deployment("llama")


async def test_deployments_are_those_of_the_namespace_or_all(cluster: Cluster, kube: FakeKube, samples: Any) -> None:
    elsewhere = samples.deployment("other")
    elsewhere["metadata"]["namespace"] = "away"
    kube.put(elsewhere)
    assert [raw["metadata"]["name"] for raw in await cluster.deployments(everywhere=False)] == ["smollm"]
    assert [raw["metadata"]["name"] for raw in await cluster.deployments(everywhere=True)] == ["other", "smollm"]


async def test_events_are_read_for_pods_that_are_not_ready(cluster: Cluster, kube: FakeKube, samples: Any) -> None:
    kube.put(samples.serving_pod("a", samples.running("False")))
    kube.put(
        {
            "kind": "Event",
            "metadata": {"namespace": "team", "name": "e"},
            "involvedObject": {"uid": "uid-a"},
            "reason": "FailedMount",
            "message": 'secret "x" not found',
        }
    )
    [pod] = await cluster.pods("smollm")
    assert [event.reason for event in pod.events] == ["FailedMount"]


async def test_serving_pods_come_without_the_downloader(cluster: Cluster, kube: FakeKube, samples: Any) -> None:
    kube.put(samples.serving_pod("b"))
    kube.put(samples.serving_pod("a"))
    kube.put(samples.serving_pod("dl", revision=""))
    assert [pod.name for pod in await cluster.serving_pods("smollm")] == ["a", "b"]


async def test_only_serving_pods_can_be_named(cluster: Cluster, kube: FakeKube, samples: Any) -> None:
    kube.put(samples.serving_pod("a"))
    kube.put(samples.serving_pod("dl", revision=""))
    assert (await cluster.pod("a"))["metadata"]["name"] == "a"
    with pytest.raises(PluginError, match="does not serve an LLMDeployment"):
        await cluster.pod("dl")
    with pytest.raises(PluginError, match="no pod ghost"):
        await cluster.pod("ghost")


async def test_a_page_is_tried_by_https_too_and_may_be_missing(cluster: Cluster, kube: FakeKube) -> None:
    kube.pages["team", "https:a", "status"] = "{}"
    assert await cluster.page("a", "status") == "{}"
    assert await cluster.page("b", "status") is None
