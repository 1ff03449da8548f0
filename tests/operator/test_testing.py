"""The fake API server has the manners of the real one."""

import pytest

from octavo_operator.cache import Cache
from octavo_operator.kube_client import Conflict, Forbidden, NotFound, Unavailable
from octavo_operator.testing import FakeKube, llm_deployment, node


def service(**spec: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "n", "name": "s"}, "spec": spec}


async def test_apply_creates_merges_and_forgets_what_is_no_longer_sent() -> None:
    kube = FakeKube()
    first = await kube.apply(service(a=1, b={"c": 2, "d": 3}))
    kube.change("Service", "n", "s", {"spec": {"theirs": True}})
    second = await kube.apply(service(b={"c": 4}))
    assert second["spec"] == {"b": {"c": 4}, "theirs": True}
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])


async def test_applying_the_same_again_changes_no_version() -> None:
    kube = FakeKube()
    first = await kube.apply(service(a=1))
    assert await kube.apply(service(a=1)) == first


async def test_a_generation_counts_changes_of_the_spec_only() -> None:
    kube = FakeKube([llm_deployment()])
    await kube.patch_status("default", "smollm", "uid-of-default-smollm", {"phase": "Pending"})
    kube.change("LLMDeployment", "default", "smollm", {"metadata": {"labels": {"a": "b"}}})
    assert kube.find("LLMDeployment", "default", "smollm")["metadata"]["generation"] == 1  # type: ignore[index]
    kube.change("LLMDeployment", "default", "smollm", {"spec": {"replicas": 2}})
    assert kube.find("LLMDeployment", "default", "smollm")["metadata"]["generation"] == 2  # type: ignore[index]


async def test_a_status_is_replaced_and_belongs_to_one_uid() -> None:
    kube = FakeKube([llm_deployment()])
    uid = "uid-of-default-smollm"
    await kube.patch_status("default", "smollm", uid, {"phase": "Pending", "message": "m"})
    after = await kube.patch_status("default", "smollm", uid, {"phase": "Ready"})
    assert after["status"] == {"phase": "Ready"}
    with pytest.raises(Conflict):
        await kube.patch_status("default", "smollm", "another", {})
    with pytest.raises(NotFound):
        await kube.patch_status("default", "other", uid, {})


async def test_what_an_object_owns_goes_with_it() -> None:
    kube = FakeKube([llm_deployment()])
    owned = service()
    owned["metadata"] = {"namespace": "n", "name": "s", "ownerReferences": [{"uid": "uid-of-default-smollm"}]}
    uid = kube.put(owned)["metadata"]["uid"]
    kube.put({"kind": "Pod", "metadata": {"namespace": "n", "name": "p", "ownerReferences": [{"uid": uid}]}})
    kube.remove("LLMDeployment", "default", "smollm")
    assert kube.all("Service") == kube.all("Pod") == []


async def test_preconditions_are_kept() -> None:
    kube = FakeKube([{"kind": "Pod", "metadata": {"namespace": "n", "name": "p", "uid": "1"}}])
    with pytest.raises(Conflict):
        await kube.delete("Pod", "n", "p", uid="2")
    with pytest.raises(Conflict):
        await kube.merge_patch("Pod", "n", "p", {"metadata": {"uid": "2"}})
    await kube.delete("Pod", "n", "p", uid="1")
    await kube.delete("Pod", "n", "p", uid="1")  # gone is no error
    assert kube.find("Pod", "n", "p") is None


async def test_a_lingering_pod_terminates_first() -> None:
    kube = FakeKube([{"kind": "Pod", "metadata": {"namespace": "n", "name": "p"}}])
    kube.lingering = True
    await kube.delete("Pod", "n", "p")
    assert "deletionTimestamp" in kube.find("Pod", "n", "p")["metadata"]  # type: ignore[index]
    await kube.delete("Pod", "n", "p", grace_seconds=0)
    assert kube.find("Pod", "n", "p") is None


async def test_only_the_newest_version_may_be_replaced() -> None:
    kube = FakeKube()
    lease = {"kind": "Lease", "metadata": {"namespace": "n", "name": "l"}, "spec": {"holderIdentity": "a"}}
    created = await kube.create(lease)
    with pytest.raises(Conflict):
        await kube.create(lease)
    replaced = await kube.replace({**created, "spec": {"holderIdentity": "b"}})
    with pytest.raises(Conflict):
        await kube.replace(created)
    assert replaced["spec"] == {"holderIdentity": "b"}


async def test_lists_know_namespaces_labels_and_fields() -> None:
    kube = FakeKube([node("a"), node("b")])
    kube.put({"kind": "Pod", "metadata": {"namespace": "n", "name": "p", "labels": {"k": "v", "l": "w"}}})
    kube.put({"kind": "Pod", "metadata": {"namespace": "m", "name": "q"}, "spec": {"nodeName": "a"}})
    assert len((await kube.list("Node")).items) == 2
    assert [raw["metadata"]["name"] for raw in (await kube.list("Pod", labels="k=v,l=w")).items] == ["p"]
    assert [raw["metadata"]["name"] for raw in (await kube.list("Pod", fields="spec.nodeName=a")).items] == ["q"]
    assert (await kube.list("Pod", "m")).resource_version == "4"
    with pytest.raises(NotFound):
        await kube.list("PodMonitor")


async def test_a_call_fails_once_when_told_to() -> None:
    kube = FakeKube([node("a")])
    kube.fail_next(Unavailable(503, "no"), "create")
    await kube.list("Node")
    with pytest.raises(Unavailable):
        await kube.create(service())
    await kube.create(service())


async def test_a_verb_that_the_chart_does_not_grant_is_refused() -> None:
    kube = FakeKube([node("a")])
    with pytest.raises(Forbidden, match="delete on nodes"):
        await kube.delete("Node", "", "a")
    await FakeKube([node("a")], as_operator=False).delete("Node", "", "a")


async def test_the_witness_sees_writes_and_deletions_but_not_others() -> None:
    cache = Cache()
    kube = FakeKube([node("a")], witness=cache)
    assert cache.count("Node") == 0
    kube.put({"kind": "Pod", "metadata": {"namespace": "n", "name": "p"}})
    await kube.merge_patch("Pod", "n", "p", {"metadata": {"labels": {"octavo.dev/deployment": "x"}}})
    assert cache.count("Pod") == 1
    await kube.delete("Pod", "n", "p")
    assert cache.count("Pod") == 0


async def test_what_is_given_is_a_copy() -> None:
    kube = FakeKube([node("a")])
    (await kube.list("Node")).items[0]["metadata"]["name"] = "changed"
    assert kube.find("Node", "", "a")["metadata"]["name"] == "a"  # type: ignore[index]


async def test_secrets_events_kinds_and_pages() -> None:
    kube = FakeKube([{"kind": "Secret", "metadata": {"namespace": "n", "name": "s"}, "data": {"a": "Yg=="}}])
    assert await kube.read_secret("n", "s") == {"a": b"b"}
    await kube.create_event({"reason": "r"})
    assert kube.events == [{"reason": "r"}]
    assert (await kube.serves("Pod"), await kube.serves("PodMonitor")) == (True, False)
    kube.pages["n", "p", "metrics"] = "text"
    assert await kube.pod_page("n", "p", 8000, "metrics") == "text"
    with pytest.raises(NotFound):
        await kube.pod_page("n", "p", 8000, "status")
