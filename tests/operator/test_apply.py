"""A child is written only where it differs."""

import copy
from typing import Any

import pytest

from octavo_operator.apply import APPLIED, NameTaken, apply_if_changed, differs, fingerprint, matches
from octavo_operator.kube_client import Raw
from octavo_operator.testing import FakeKube

OWNER = {"apiVersion": "octavo.dev/v1alpha1", "kind": "LLMDeployment", "name": "x", "uid": "1", "controller": True}


def service(port: int = 80) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": "team", "name": "x", "ownerReferences": [OWNER]},
        "spec": {"ports": [{"name": "http", "port": port, "targetPort": "http"}], "selector": {"a": "b"}},
    }


async def test_a_second_pass_writes_nothing() -> None:
    kube = FakeKube()
    assert await apply_if_changed(kube, service(), None)
    assert not await apply_if_changed(kube, service(), kube.find("Service", "team", "x"))
    assert [verb for verb, *_ in kube.writes] == ["apply"]


async def test_a_new_manifest_is_applied_and_the_fields_it_dropped_go_away() -> None:
    kube = FakeKube()
    await apply_if_changed(kube, service(), None)
    smaller = service()
    del smaller["spec"]["selector"]
    assert await apply_if_changed(kube, smaller, kube.find("Service", "team", "x"))
    assert "selector" not in kube.find("Service", "team", "x")["spec"]  # type: ignore[index]


@pytest.mark.parametrize(
    "drift",
    [
        {"spec": {"selector": {"a": "somebody's"}}},
        {"spec": {"ports": None}},
        {"metadata": {"annotations": None}},
        {"metadata": {"ownerReferences": None}},
    ],
)
async def test_what_others_changed_of_ours_is_put_right(drift: dict[str, Any]) -> None:
    kube = FakeKube()
    await apply_if_changed(kube, service(), None)
    kube.change("Service", "team", "x", drift)
    assert await apply_if_changed(kube, service(), kube.find("Service", "team", "x"))
    assert not await apply_if_changed(kube, service(), kube.find("Service", "team", "x"))


async def test_what_others_added_beside_ours_stays() -> None:
    kube = FakeKube()
    await apply_if_changed(kube, service(), None)
    kube.change(
        "Service", "team", "x", {"metadata": {"annotations": {"theirs": "1"}}, "spec": {"clusterIP": "10.0.0.1"}}
    )
    assert not await apply_if_changed(kube, service(), kube.find("Service", "team", "x"))


async def test_somebody_elses_object_of_the_same_name_is_left_alone() -> None:
    theirs = service(8080)
    del theirs["metadata"]["ownerReferences"]
    kube = FakeKube([theirs])
    with pytest.raises(NameTaken, match="Service team/x"):
        await apply_if_changed(kube, service(), None)
    assert kube.find("Service", "team", "x")["spec"]["ports"][0]["port"] == 8080  # type: ignore[index]


async def test_an_own_object_that_the_cache_has_not_seen_is_no_stranger() -> None:
    kube = FakeKube()
    await apply_if_changed(kube, service(), None)
    assert not await apply_if_changed(kube, service(), None)


def test_the_fingerprint_depends_on_content_not_on_order() -> None:
    manifest = service()
    turned = dict(reversed(list(copy.deepcopy(manifest).items())))
    assert fingerprint(manifest) == fingerprint(turned)
    assert fingerprint(manifest) != fingerprint(service(81))


def test_the_annotation_is_not_part_of_the_fingerprint() -> None:
    manifest = service()
    seen = copy.deepcopy(manifest)
    seen["metadata"]["annotations"] = {APPLIED: fingerprint(manifest)}
    assert not differs(manifest, seen)


@pytest.mark.parametrize(
    ("wanted", "seen"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": {}}, {}),
        ({"a": []}, {}),
        ({"a": False, "b": 0, "c": "", "d": None}, {}),
        ({"requests": {"cpu": "1000m", "memory": "1024Mi"}}, {"requests": {"cpu": "1", "memory": "1Gi"}}),
        ({"emptyDir": {"sizeLimit": "1024Mi"}}, {"emptyDir": {"sizeLimit": "1Gi"}}),
        ({"maxUnavailable": 1}, {"maxUnavailable": "1"}),
        ({"containers": [{"name": "b"}]}, {"containers": [{"name": "a"}, {"name": "b", "image": "x"}]}),
        ({"args": ["a", "b"]}, {"args": ["a", "b"]}),
        ({"ports": [{"port": 80}]}, {"ports": [{"port": 80, "protocol": "TCP"}]}),
        ({"from": [{"podSelector": {}}]}, {"from": [{"podSelector": {}}]}),
    ],
)
def test_defaults_and_other_spellings_are_the_same(wanted: Raw, seen: Raw) -> None:
    assert matches(wanted, seen)


@pytest.mark.parametrize(
    ("wanted", "seen"),
    [
        ({"a": 1}, {}),
        ({"a": 1}, {"a": 2}),
        ({"a": {"b": 1}}, {"a": "text"}),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "nonsense"}}),
        ({"args": ["a", "b"]}, {"args": ["b", "a"]}),
        ({"args": ["a"]}, {"args": ["a", "b"]}),
        ({"args": ["a"]}, {"args": "a"}),
        ({"containers": [{"name": "b"}]}, {"containers": [{"name": "a"}]}),
        ({"flag": True}, {"flag": "True"}),
        ({"cpu": "1000m"}, {"cpu": "1"}),  # an annotation, say
    ],
)
def test_differences_are_seen(wanted: Raw, seen: Raw) -> None:
    assert not matches(wanted, seen)


def test_the_end_of_a_long_manifest_counts() -> None:
    long = {"metadata": {"name": "a"}, "data": "x" * 10_000}
    assert fingerprint(long) == fingerprint(dict(reversed(long.items())))
    assert fingerprint(long) != fingerprint({**long, "data": "x" * 9_999 + "y"})
