"""One pod, one finding: the one that explains the others."""

from typing import Any

from octavo_operator.observed import ContainerView
from octavo_operator.reasons import Reason
from octavo_operator.status.signals import diagnose


def test_a_serving_pod_has_no_finding(build: Any) -> None:
    assert diagnose(build.pod(), build.now) is None


def test_pods_that_are_on_their_way_out_are_left_alone(build: Any) -> None:
    assert diagnose(build.crashed(terminating=True), build.now) is None
    assert diagnose(build.crashed(drain_started_at=build.now - 3), build.now) is None


def test_finding_names_the_pod_and_the_container_that_ended(build: Any) -> None:
    finding = diagnose(build.crashed(name="smollm-7"), build.now)
    assert finding is not None
    assert (finding.pod, finding.container, finding.exit_code) == ("smollm-7", "octavo", 1)


def test_downloader_has_its_own_container(build: Any) -> None:
    finding = diagnose(build.crashed(), build.now, "download")
    assert finding is not None
    assert finding.container == "download"


def test_eviction_comes_before_the_crash_that_it_caused(build: Any) -> None:
    pod = build.crashed(
        phase="Failed", status_reason="Evicted", status_message="Pod ephemeral local storage usage exceeds ..."
    )
    finding = diagnose(pod, build.now)
    assert finding is not None
    assert finding.reason is Reason.DISK_FULL


def test_an_unscheduled_pod_is_not_said_to_be_starting(build: Any) -> None:
    pod = build.starting(node="", scheduled_message="0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    finding = diagnose(pod, build.now)
    assert finding is not None
    assert finding.reason is Reason.WAITING_FOR_GPU


def test_a_pod_without_any_news_is_starting(build: Any) -> None:
    finding = diagnose(build.starting(container=ContainerView()), build.now)
    assert finding is not None
    assert finding.reason is Reason.STARTING
