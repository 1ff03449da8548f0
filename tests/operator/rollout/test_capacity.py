from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.observed import ClusterView, NodeView, PodView, QuotaView
from octavo_operator.rollout.capacity import headroom

GPU = "nvidia.com/gpu"
POD = {GPU: 2, "cpu": 4000, "memory": 16 << 30, "pods": 1}


def node(name: str = "n1", gpus: int = 8, used: int = 0, **fields: Any) -> NodeView:
    total = {GPU: gpus, "cpu": 64_000, "memory": 512 << 30, "pods": 110}
    defaults: dict[str, Any] = {
        "schedulable": True,
        "labels": {},
        "taints": (),
        "allocatable": total,
        "requested": {GPU: used},
    }
    return NodeView(name=name, **(defaults | fields))


def cluster(*nodes: NodeView, quotas: tuple[QuotaView, ...] = ()) -> ClusterView:
    return ClusterView(nodes=nodes, quotas=quotas)


def test_whole_pods_are_counted_on_each_node() -> None:
    assert headroom(POD, {}, cluster(node(gpus=3), node("n2", gpus=5, used=1))).pods == 1 + 2


def test_any_resource_can_be_the_scarce_one() -> None:
    full = node(requested={"cpu": 61_000})
    room = headroom(POD, {}, cluster(full))
    assert room.pods == 0
    assert room.reason == "no node has 4 cpu free (at most 3)"


def test_cordoned_and_tainted_and_other_nodes_do_not_count() -> None:
    tainted = node("n2", taints=({"key": "k", "effect": "NoSchedule"},))
    room = headroom(POD, {}, cluster(node(schedulable=False), tainted))
    assert room.pods == 0
    assert room.reason == "every node that matches is cordoned, not ready or tainted"
    assert not room.impossible
    room = headroom(POD, {"nodeSelector": {"zone": "a"}}, cluster(node()))
    assert room.reason == "no node matches the pod's node selector or affinity"
    assert not room.impossible


@pytest.mark.parametrize(
    ("key", "hard", "used", "pods"),
    [
        ("requests.nvidia.com/gpu", 8, 5, 1),
        ("requests.cpu", 10_000, 1_000, 2),
        ("memory", 32 << 30, 0, 2),
        ("limits.cpu", 9_000, 0, 1),
        ("pods", 10, 8, 2),
        ("count/pods", 10, 9, 1),
        ("requests.nvidia.com/gpu", 8, 9, 0),
    ],
)
def test_a_quota_bounds_what_it_names(key: str, hard: int, used: int, pods: int) -> None:
    quota = QuotaView("team", {key: hard}, {key: used})
    room = headroom(POD, {}, cluster(node(), quotas=(quota,)), limits={"cpu": 8000})
    assert (room.in_quota, room.pods) == (pods, pods)


def test_the_tightest_quota_is_named() -> None:
    quotas = (QuotaView("wide", {"pods": 50}, {}), QuotaView("tight", {"requests.nvidia.com/gpu": 1}, {}))
    room = headroom(POD, {}, cluster(node(), quotas=quotas))
    assert room.pods == 0
    assert room.reason == "quota tight allows 0 more"


def test_a_quota_on_other_things_is_no_bound() -> None:
    assert headroom(POD, {}, cluster(node(), quotas=(QuotaView("q", {"count/services": 1}, {}),))).in_quota is None


def test_a_pod_that_no_node_could_ever_hold_is_impossible_and_says_what_is_short() -> None:
    room = headroom({GPU: 16, "pods": 1}, {}, cluster(node(used=8), node("n2", schedulable=False)))
    assert room.impossible == "A replica asks for 16 nvidia.com/gpu; the largest node that it may use has 8."


def test_a_full_node_is_not_an_impossible_one() -> None:
    assert headroom(POD, {}, cluster(node(used=8))).impossible == ""


def test_resources_that_no_single_node_has_together_are_impossible() -> None:
    big_cpu = node("n2", gpus=0, allocatable={"cpu": 128_000, "memory": 1 << 40, "pods": 10})
    room = headroom({GPU: 8, "cpu": 100_000, "pods": 1}, {}, cluster(node(), big_cpu))
    assert room.impossible == "No node has all that a replica asks for together: 8 nvidia.com/gpu, 100 cpu."


def test_a_resource_that_no_node_has_may_yet_come() -> None:
    """A pool of GPU nodes that is scaled to zero: the pod that waits is what makes it grow."""
    room = headroom({"amd.com/gpu": 1, "pods": 1}, {}, cluster(node()))
    assert room.impossible == ""
    assert room.pods == 0


@given(
    st.lists(st.tuples(st.integers(0, 16), st.integers(0, 16)), max_size=6),
    st.integers(1, 8),
    st.integers(0, 8),
)
def test_one_pod_more_takes_exactly_one_from_the_headroom(nodes: list[tuple[int, int]], gpus: int, limit: int) -> None:
    views = [node(f"n{number}", gpus=total, used=used) for number, (total, used) in enumerate(nodes)]
    request = {GPU: gpus, "pods": 1}
    before = headroom(request, {}, cluster(*views), limit=100).pods
    assert headroom(request, {}, cluster(*views), limit=limit).pods == min(before, limit)
    for number, view in enumerate(views):
        if view.allocatable[GPU] - view.requested[GPU] >= gpus:
            taken = node(view.name, gpus=view.allocatable[GPU], used=view.requested[GPU] + gpus)
            after = headroom(request, {}, cluster(*views[:number], taken, *views[number + 1 :]), limit=100).pods
            assert after == before - 1
            return
    assert before == 0


def test_nodes_are_counted_no_further_than_the_limit() -> None:
    nodes = cluster(*(node(f"n{number}") for number in range(5)))
    assert [headroom(POD, {}, nodes, limit=limit).pods for limit in (1, 4, 5, 100)] == [1, 4, 5, 20]


def test_a_pod_may_fit_in_the_place_of_ours_on_a_full_node(pod: Callable[..., PodView]) -> None:
    ours = [pod(requests={GPU: 2, "pods": 1})]
    assert headroom({GPU: 2, "pods": 1}, {}, cluster(node(used=8)), own=ours).instead
    assert not headroom({GPU: 2, "pods": 1}, {}, cluster(node(used=8))).instead


@pytest.mark.parametrize("gpus", [4, 16])
def test_giving_up_our_pods_gains_nothing_for_one_that_is_larger_than_their_room(
    gpus: int, pod: Callable[..., PodView]
) -> None:
    ours = [pod(requests={GPU: 2, "pods": 1})]
    assert not headroom({GPU: gpus, "pods": 1}, {}, cluster(node(used=8)), own=ours).instead


def test_our_pods_elsewhere_make_no_room_on_a_node_that_is_wanted(pod: Callable[..., PodView]) -> None:
    nodes = cluster(node(used=8, labels={"kind": "old"}), node("n2", used=8, labels={"kind": "new"}))
    ours = [pod(requests={GPU: 2, "pods": 1})]
    assert not headroom({GPU: 2, "pods": 1}, {"nodeSelector": {"kind": "new"}}, nodes, own=ours).instead


@pytest.mark.parametrize(("asked", "fits"), [(16, True), (17, False)])
def test_a_quota_that_is_too_small_for_the_new_pod_even_without_ours(
    asked: int, fits: bool, pod: Callable[..., PodView]
) -> None:
    quota = QuotaView("team", {"requests.memory": 16, "limits.memory": 16}, {"requests.memory": 12})
    ours = [pod(requests={"memory": 12, "pods": 1})]
    nodes = cluster(node(), quotas=(quota,))
    assert headroom({"memory": asked, "pods": 1}, {}, nodes, own=ours).instead is fits


def test_where_nodes_may_not_be_seen_in_place_is_tried() -> None:
    assert headroom(POD, {}, cluster()).instead
