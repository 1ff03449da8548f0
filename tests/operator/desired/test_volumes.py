"""What is mounted where."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.desired.volumes import claim_volume, scratch_volumes
from octavo_operator.quantity import GIB
from octavo_operator.weights import Weights


def by_path(rendered: Any) -> dict[str, dict[str, Any]]:
    """Mount path -> the volume with its mount."""
    volumes = {volume["name"]: volume for volume in rendered.pod["volumes"]}
    return {mount["mountPath"]: volumes[mount["name"]] | mount for mount in rendered.container["volumeMounts"]}


def test_every_volume_is_mounted_and_every_mount_has_a_volume(render: Callable[..., Any]) -> None:
    model = {"uri": "pvc://weights/a", "chatTemplate": {"configMapKeyRef": {"name": "templates"}}}
    rendered = render({"model": model, "access": {"tls": {"secretName": "cert"}}}, gpus=1)
    assert {v["name"] for v in rendered.pod["volumes"]} == {m["name"] for m in rendered.container["volumeMounts"]}


def test_whatever_is_written_has_a_limit(render: Callable[..., Any]) -> None:
    scratch = [volume["emptyDir"] for volume in render({}, gpus=1).pod["volumes"] if "emptyDir" in volume]
    assert len(scratch) == 3
    assert all(source["sizeLimit"] for source in scratch)


def test_downloaded_weights_fit_into_the_cache(render: Callable[..., Any]) -> None:
    found = by_path(render({}, weights=Weights(None, 10 * GIB)))
    assert found["/cache"]["emptyDir"] == {"sizeLimit": "14Gi"}


@pytest.mark.parametrize(
    ("engine", "gpus", "size"),
    [({}, 0, None), ({}, 1, "1Gi"), ({"tensorParallelSize": 2}, 2, "8Gi")],
)
def test_shared_memory_is_real_memory_where_processes_share_it(
    engine: dict[str, Any], gpus: int, size: str | None, render: Callable[..., Any]
) -> None:
    found = by_path(render({"engine": engine}, gpus=gpus)).get("/dev/shm")
    assert (found["emptyDir"] if found else None) == ({"medium": "Memory", "sizeLimit": size} if size else None)


def test_keys_and_certificates_follow_their_secrets_and_any_user_may_read_them(render: Callable[..., Any]) -> None:
    found = by_path(render({"access": {"tls": {"secretName": "cert"}}}))
    assert found["/etc/octavo/keys"]["secret"] == {"secretName": "small-keys", "defaultMode": 0o444}
    assert found["/etc/octavo/tls"]["secret"] == {"secretName": "cert", "defaultMode": 0o444}
    assert all(found[path]["readOnly"] for path in ("/etc/octavo/keys", "/etc/octavo/tls"))
    assert not [mount for mount in found.values() if "subPath" in mount]  # such a mount never changes again


def test_a_chat_template_is_one_key_of_its_config_map(render: Callable[..., Any]) -> None:
    reference = {"configMapKeyRef": {"name": "templates", "key": "mine"}}
    found = by_path(render({"model": {"uri": "hf://a/b", "chatTemplate": reference}}))
    source = found["/etc/octavo/chat-template"]["configMap"]
    assert (source["name"], source["items"]) == ("templates", [{"key": "mine", "path": "mine"}])


@pytest.mark.parametrize(
    ("spec", "path", "claim"),
    [
        ({"model": {"uri": "pvc://weights/a"}}, "/model", "weights"),
        ({"cache": {"mode": "SharedPVC", "sharedPVC": {"claimName": "mine"}}}, "/models", "mine"),
        ({"cache": {"mode": "SharedPVC", "sharedPVC": {"size": "1Gi"}}}, "/models", "small-cache"),
    ],
)
def test_a_claim_is_mounted_read_only(spec: dict[str, Any], path: str, claim: str, render: Callable[..., Any]) -> None:
    found = by_path(render(spec))[path]
    assert found["persistentVolumeClaim"] == {"claimName": claim}
    assert found["readOnly"] is True


def test_only_a_downloader_writes_on_a_claim() -> None:
    volume, mount = claim_volume("weights", "/models", read_only=False)
    assert volume["persistentVolumeClaim"] == {"claimName": "weights"}
    assert "readOnly" not in mount


def test_a_downloader_has_scratch_space() -> None:
    volumes, mounts = scratch_volumes()
    assert [mount["mountPath"] for mount in mounts] == ["/cache", "/tmp"]
    assert all(volume["emptyDir"]["sizeLimit"] for volume in volumes)
