"""Why a container does not exist yet: image, references, volumes, node."""

from typing import Any

import pytest

from octavo_operator.observed import ContainerView
from octavo_operator.reasons import Reason
from octavo_operator.status.waiting import held_up

NOT_FOUND = (
    'Back-off pulling image "octavo:nope": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image '
    '"docker.io/library/octavo:nope": not found'
)


def waits(build: Any, reason: str, message: str = "", *events: Any) -> Any:
    return held_up(build.starting(container=ContainerView(reason, message), events=events))


@pytest.mark.parametrize(
    ("waiting", "message", "reason", "blocks"),
    [
        ("ImagePullBackOff", NOT_FOUND, Reason.IMAGE_PULL_FAILED, True),
        (
            "ErrImageNeverPull",
            "Container image is not present with pull policy of Never",
            Reason.IMAGE_PULL_FAILED,
            True,
        ),
        ("InvalidImageName", "couldn't parse image name", Reason.IMAGE_PULL_FAILED, True),
        ("ErrImagePull", "dial tcp 10.0.0.1:443: i/o timeout", Reason.IMAGE_PULL_FAILED, False),
        ("ErrImagePull", "toomanyrequests: rate limit", Reason.IMAGE_PULL_FAILED, False),
        ("CreateContainerConfigError", 'secret "hub-token" not found', Reason.REFERENCE_MISSING, True),
        ("CreateContainerConfigError", "couldn't find key HF_TOKEN in Secret team/hub", Reason.REFERENCE_MISSING, True),
        (
            "CreateContainerConfigError",
            "container has runAsNonRoot and image will run as root",
            Reason.CONTAINER_REFUSED,
            True,
        ),
        ("CreateContainerError", "write /var/lib: no space left on device", Reason.DISK_FULL, True),
        ("ContainerCreating", "", Reason.STARTING, False),
    ],
)
def test_reason_of_a_waiting_container(build: Any, waiting: str, message: str, reason: Reason, blocks: bool) -> None:
    finding = waits(build, waiting, message)
    assert finding.reason is reason
    assert finding.blocks is blocks


def test_image_message_is_without_the_noise_of_rpc(build: Any) -> None:
    assert "rpc error" not in waits(build, "ImagePullBackOff", NOT_FOUND).message


def test_cause_of_a_bare_back_off_is_taken_from_the_events(build: Any) -> None:
    failed = build.event("Failed", 'Failed to pull image "octavo:nope": not found')
    backing_off = build.event("Failed", "Error: ImagePullBackOff", age=1)
    finding = waits(build, "ImagePullBackOff", 'Back-off pulling image "octavo:nope"', failed, backing_off)
    assert finding.message == failed.message


def test_a_volume_that_another_node_holds(build: Any) -> None:
    event = build.event(
        "FailedAttachVolume", 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) x'
    )
    assert waits(build, "ContainerCreating", "", event).reason is Reason.VOLUME_MULTI_ATTACH


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('MountVolume.SetUp failed for volume "tls" : secret "tls" not found', Reason.REFERENCE_MISSING),
        ('MountVolume.SetUp failed for volume "t" : configmap "template" not found', Reason.REFERENCE_MISSING),
        ('MountVolume.SetUp failed for volume "t" : references non-existent config key: x', Reason.REFERENCE_MISSING),
        ("Unable to attach or mount volumes: timed out waiting for the condition", Reason.WAITING_FOR_VOLUME),
    ],
)
def test_reason_of_a_failed_mount(build: Any, message: str, reason: Reason) -> None:
    assert waits(build, "ContainerCreating", "", build.event("FailedMount", message)).reason is reason


def test_a_pull_under_way_is_told_until_it_is_done(build: Any) -> None:
    pulling = build.event("Pulling", 'Pulling image "octavo-runtime:1"', age=9)
    assert waits(build, "ContainerCreating", "", pulling).reason is Reason.IMAGE_PULLING
    pulled = build.event("Pulled", "Successfully pulled image", age=2)
    assert waits(build, "ContainerCreating", "", pulling, pulled).reason is Reason.STARTING


def test_a_sandbox_that_the_node_cannot_make(build: Any) -> None:
    event = build.event("FailedCreatePodSandBox", "Failed to create pod sandbox: no IP addresses available")
    assert waits(build, "ContainerCreating", "", event).reason is Reason.WAITING_FOR_NODE


def test_a_running_container_is_not_held_up(build: Any) -> None:
    assert held_up(build.pod()) is None
