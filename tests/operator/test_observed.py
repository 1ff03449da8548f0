"""What a pod counts as."""

from dataclasses import replace

import pytest

from octavo_operator.api import parse
from octavo_operator.observed import ClusterView, NodeView, Observed, PodView, RevisionView
from octavo_operator.testing import llm_deployment


def pod(phase: str = "Running", terminating: bool = False) -> PodView:
    return PodView("p", "u", "a", 0.0, phase, False, False, None, terminating)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_a_pod_is_a_replica_until_it_ends_or_is_deleted(phase: str) -> None:
    assert pod(phase).is_active
    assert not pod(phase).has_ended
    assert not pod(phase, terminating=True).is_active
    assert not pod(phase, terminating=True).has_ended


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_an_ended_pod_is_no_replica(phase: str) -> None:
    assert pod(phase).has_ended
    assert not pod(phase).is_active


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", "Succeeded", "Failed"])
@pytest.mark.parametrize("terminating", [False, True])
def test_a_revision_takes_over_from_pods_of_others_that_are_not_merely_old_objects(
    phase: str, terminating: bool
) -> None:
    lingers = phase in {"Succeeded", "Failed"} and not terminating
    old, new = RevisionView("a", 1, {}, 1, (pod(phase, terminating),)), RevisionView("b", 2, {}, 1, (pod(),))
    seen = Observed(0.0, parse(llm_deployment()), ClusterView(), revisions=(old, new))
    assert seen.beside("b") == (() if lingers else old.pods)
    assert seen.beside("") == (*seen.beside("b"), *new.pods)


def node(name: str, ready: bool = True) -> NodeView:
    return NodeView(name, True, {}, (), {}, {}, ready)


@pytest.mark.parametrize(
    ("nodes", "lost"),
    [
        ((node("here"), node("there")), False),
        ((node("here"), node("there", ready=False)), True),
        ((node("here"),), True),
        ((), False),  # the operator may not see nodes
    ],
)
def test_what_terminates_on_a_lost_node_is_gone_though_its_object_stays(
    nodes: tuple[NodeView, ...], lost: bool
) -> None:
    leaving = replace(pod(terminating=True), node="there")
    staying = replace(pod(), node="there")
    old = RevisionView("a", 1, {}, 1, (leaving, staying))
    seen = Observed(0.0, parse(llm_deployment()), ClusterView(nodes=nodes), revisions=(old,))
    assert seen.lost_nodes == (frozenset({"there"}) if lost else frozenset())
    assert seen.beside("b") == ((staying,) if lost else (leaving, staying))
