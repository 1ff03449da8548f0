"""What is kept of an object."""

import base64

from octavo_operator.slimming import hash_of, is_ours, node_of, requests_of, slim
from octavo_operator.testing import node

OURS = {"octavo.dev/deployment": "x"}


def test_managers_are_dropped_and_the_given_object_is_left_as_it_was() -> None:
    raw = {"kind": "Service", "metadata": {"name": "a", "managedFields": [{}]}, "spec": {"ports": []}}
    assert slim(raw) == {"kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": []}}
    assert "managedFields" in raw["metadata"]


def test_of_a_foreign_secret_only_hashes_are_kept() -> None:
    raw = {
        "kind": "Secret",
        "metadata": {"name": "keys"},
        "type": "Opaque",
        "data": {"alice": base64.b64encode(b"sk-top-secret\n").decode()},
    }
    kept = slim(raw)
    assert kept["hashes"] == {"alice": hash_of(b"sk-top-secret")}
    assert "data" not in kept
    assert "sk-top-secret" not in str(kept)
    assert raw["data"]["alice"] not in str(kept)


def test_our_own_secret_is_kept_to_be_compared() -> None:
    raw = {"kind": "Secret", "metadata": {"name": "x-keys", "labels": OURS}, "data": {"api-keys": "c2hhMjU2Og=="}}
    assert slim(raw)["data"] == raw["data"]


def test_of_a_foreign_pod_its_node_and_requests_are_kept() -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"namespace": "n", "name": "p", "uid": "1", "annotations": {"long": "x" * 1000}},
        "spec": {"nodeName": "node-1", "containers": [{"resources": {"requests": {"cpu": "500m"}}}]},
        "status": {"phase": "Running"},
    }
    kept = slim(pod)
    assert (kept["node"], kept["requests"]) == ("node-1", {"cpu": 500, "pods": 1})
    assert set(kept) == {"kind", "metadata", "node", "requests"}
    assert "annotations" not in kept["metadata"]


def test_of_our_own_pod_the_spec_is_its_node_and_requests() -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"namespace": "n", "name": "p", "uid": "1", "labels": OURS, "annotations": {"a": "b"}},
        "spec": {"nodeName": "node-1", "volumes": [{}], "containers": [{"resources": {"requests": {"cpu": "500m"}}}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    }
    kept = slim(pod)
    assert kept["spec"] == {"nodeName": "node-1"}
    assert requests_of(kept) == requests_of(pod) == {"cpu": 500, "pods": 1}
    assert (kept["status"], kept["metadata"]) == (pod["status"], pod["metadata"])
    assert slim(kept) == kept


def test_a_pod_that_is_over_or_not_placed_holds_no_node() -> None:
    assert node_of({"spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}}) == ""
    assert node_of({"spec": {"nodeName": "n"}, "status": {"phase": "Failed"}}) == ""
    assert node_of({"spec": {}, "status": {"phase": "Pending"}}) == ""
    assert node_of({"spec": {"nodeName": "n"}, "status": {"phase": "Pending"}}) == "n"


def test_of_a_node_what_scheduling_reads_is_kept() -> None:
    raw = node()
    raw["status"]["images"] = [{"names": ["a"] * 100}]
    raw["status"]["conditions"].append({"type": "DiskPressure", "status": "False", "lastHeartbeatTime": "now"})
    raw["spec"] = {"unschedulable": True, "taints": [{"key": "k"}], "podCIDR": "10.0.0.0/24"}
    kept = slim(raw)
    assert kept["status"] == {
        "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    assert kept["spec"] == {"unschedulable": True, "taints": [{"key": "k"}]}


def test_ours_carry_the_label() -> None:
    assert is_ours({"metadata": {"labels": OURS}})
    assert not is_ours({"metadata": {"labels": None}})
