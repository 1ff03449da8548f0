"""The newest known form of every object, whoever told of it."""

from typing import Any

from octavo_operator.cache import Cache
from octavo_operator.kube_client import ObjectList, Raw
from octavo_operator.testing import llm_deployment, node

KEY = ("team", "x")


def child(kind: str = "Deployment", name: str = "x-1", version: int = 1, uid: str = "owner", **more: Any) -> Raw:
    owner = {"apiVersion": "octavo.dev/v1alpha1", "kind": "LLMDeployment", "name": "x", "uid": uid, "controller": True}
    return {
        "kind": kind,
        "metadata": {
            "namespace": "team",
            "name": name,
            "resourceVersion": str(version),
            "labels": {"octavo.dev/deployment": "x"},
            "ownerReferences": [owner],
        },
        **more,
    }


def foreign_pod(version: int, node_name: str = "node-1", phase: str = "Running", name: str = "theirs") -> Raw:
    return {
        "kind": "Pod",
        "metadata": {"namespace": "team", "name": name, "resourceVersion": str(version)},
        "spec": {"nodeName": node_name, "containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]},
        "status": {"phase": phase},
    }


def versioned(raw: Raw, version: int) -> Raw:
    raw["metadata"]["resourceVersion"] = str(version)
    return raw


def gpus_asked(cache: Cache) -> int:
    return sum(requested.get("nvidia.com/gpu", 0) for _, requested in cache.nodes())


def test_an_older_or_equal_version_is_no_news() -> None:
    cache = Cache()
    assert cache.see(child(version=7, spec={"replicas": 2}))
    assert not cache.see(child(version=7))
    assert not cache.see(child(version=6, spec={"replicas": 1}))
    assert cache.child("Deployment", KEY, "owner", "x-1")["spec"] == {"replicas": 2}  # type: ignore[index]


def test_versions_are_compared_as_numbers() -> None:
    cache = Cache()
    cache.see(child(version=9))
    assert cache.see(child(version=10))


def test_an_own_write_is_read_at_once_and_its_event_is_no_news() -> None:
    cache = Cache()
    cache.see(child(version=1, spec={"replicas": 1}))
    written = child(version=5, spec={"replicas": 3})
    cache.see(written)
    assert cache.children("Deployment", KEY, "owner")[0]["spec"] == {"replicas": 3}
    assert not cache.see(child(version=3, spec={"replicas": 1}))
    assert not cache.see(written)


def test_children_of_another_uid_or_of_nobody_are_not_ours() -> None:
    cache = Cache()
    cache.see(child(uid="an older resource of that name"))
    orphan = child(name="x-2", version=2)
    del orphan["metadata"]["ownerReferences"]
    cache.see(orphan)
    assert cache.children("Deployment", KEY, "owner") == ()
    assert cache.child("Deployment", KEY, "owner", "x-2") is None


def test_pods_are_found_by_their_label_alone() -> None:
    cache = Cache()
    cache.see(child("Pod", "x-1-abc", uid="a ReplicaSet"))
    assert len(cache.children("Pod", KEY, "owner")) == 1
    assert cache.child("Pod", KEY, "owner", "x-1-abc") is not None


def test_a_deleted_object_does_not_come_back_by_a_late_event_or_list() -> None:
    cache = Cache()
    cache.see(child(version=4))
    assert cache.forget("Deployment", "team", "x-1", 6) is not None
    assert not cache.see(child(version=5))
    cache.replace_all("Deployment", ObjectList((child(version=4),), "5"))
    assert cache.children("Deployment", KEY, "owner") == ()
    assert cache.see(child(version=8))  # made anew


def test_a_late_deletion_does_not_remove_the_successor() -> None:
    cache = Cache()
    cache.see(child(version=9))
    assert cache.forget("Deployment", "team", "x-1", 6) is None
    assert len(cache.children("Deployment", KEY, "owner")) == 1


def test_a_list_removes_what_is_gone_and_tells_of_it() -> None:
    cache = Cache()
    cache.see(child(name="x-1", version=1))
    cache.see(child(name="x-2", version=2))
    cache.see(child(name="x-3", version=99))  # written after the list was made
    news = cache.replace_all("Deployment", ObjectList((child(name="x-2", version=2),), "50"))
    assert [raw["metadata"]["name"] for raw in news] == ["x-1"]
    assert {raw["metadata"]["name"] for raw in cache.children("Deployment", KEY, "owner")} == {"x-2", "x-3"}


def test_a_list_of_one_namespace_leaves_the_others() -> None:
    cache = Cache()
    cache.see(child())
    assert cache.replace_all("Deployment", ObjectList((), "9"), "elsewhere") == []
    assert cache.count("Deployment") == 1


def test_a_storage_that_was_set_back_starts_anew() -> None:
    cache = Cache()
    cache.replace_all("Deployment", ObjectList((child(version=90),), "100"))
    cache.forget("Deployment", "team", "x-9", 95)
    cache.replace_all("Deployment", ObjectList((child(version=40), child(name="x-9", version=41)), "50"))
    assert {raw["metadata"]["resourceVersion"] for raw in cache.children("Deployment", KEY, "owner")} == {"40", "41"}


def test_what_foreign_pods_ask_for_is_counted_until_they_end() -> None:
    cache = Cache()
    cache.see(versioned(node("node-1"), 1))
    assert not cache.see(foreign_pod(2))  # taken room wakes nobody
    cache.see(foreign_pod(3))
    assert gpus_asked(cache) == 1
    assert cache.see(foreign_pod(4, phase="Succeeded"))  # freed room does
    assert gpus_asked(cache) == 0
    cache.see(foreign_pod(5, name="second"))
    assert cache.forget("Pod", "team", "second", 6) is not None
    assert gpus_asked(cache) == 0


def test_the_cluster_version_rises_with_load_and_nodes_only() -> None:
    cache = Cache()
    before = cache.cluster_version
    cache.see(child())
    assert cache.cluster_version == before
    cache.see(foreign_pod(2))
    assert cache.cluster_version > before


def test_a_heartbeat_of_a_node_is_no_news_but_a_cordon_is() -> None:
    cache = Cache()
    assert cache.see(versioned(node("n"), 1))
    assert not cache.see(versioned(node("n"), 2))
    cordoned = versioned(node("n"), 3)
    cordoned["spec"] = {"unschedulable": True}
    assert cache.see(cordoned)


def test_who_waits_is_known_from_the_newest_status() -> None:
    cache = Cache()
    raw = versioned(llm_deployment("x", "team"), 1)
    raw["status"] = {"conditions": [{"type": "Ready", "reason": "WaitingForGPU"}]}
    cache.see(raw)
    assert cache.waiting() == {KEY}
    cache.see(versioned(llm_deployment("x", "team"), 2))
    assert cache.waiting() == frozenset()


def test_keys_and_secrets_are_found_by_namespace_and_selector() -> None:
    cache = Cache()
    deployment = versioned(llm_deployment("x", "team", access={"apiKeys": {"secretSelector": {"for": "x"}}}), 1)
    secret: Raw = {
        "kind": "Secret",
        "metadata": {"namespace": "team", "name": "s", "resourceVersion": "2", "labels": {"for": "x"}},
        "data": {"alice": "c2s="},
    }
    cache.see(deployment)
    cache.see(secret)
    cache.see(child("Secret", "x-keys", 3, data={"api-keys": ""}))
    assert cache.keys() == {KEY}
    assert [raw["metadata"]["name"] for raw in cache.deployments("team")] == ["x"]
    assert cache.deployments("other") == ()
    assert [raw["metadata"]["name"] for raw in cache.key_secrets(deployment)] == ["s"]
    assert set(cache.secret_hashes("team", "s") or ()) == {"alice"}
    assert cache.secret_hashes("team", "x-keys") is None
    assert cache.secret_hashes("team", "unknown") is None


def test_nothing_is_left_of_what_went_away() -> None:
    cache = Cache()
    cache.see(child())
    cache.see(foreign_pod(2))
    cache.forget("Deployment", "team", "x-1")
    cache.forget("Pod", "team", "theirs")
    cache.replace_all("Deployment", ObjectList((), "10"))
    cache.replace_all("Pod", ObjectList((), "10"))
    assert cache.count("Deployment") == cache.count("Pod") == 0
    assert not cache._children
    assert not cache._deleted
    assert not cache._shares


def test_objects_of_one_resource_are_found_without_looking_at_others() -> None:
    """1,000 resources with 20 children each: a look-up touches its own 20."""
    cache = Cache()
    for number in range(1000):
        for index in range(20):
            raw = child(name=f"x-{index}", version=number * 20 + index + 1)
            raw["metadata"]["namespace"] = f"team-{number}"
            cache.see(raw)
    assert len(cache.children("Deployment", ("team-500", "x"), "owner")) == 20
    assert len(cache._children) == 1000
