"""How many replicas are wanted, and by whom."""

from typing import Any

from octavo_operator.api import parse
from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.autoscaling.samples import TimedSample
from octavo_operator.effective import RenderDefaults, decide
from octavo_operator.observed import ClusterView, Observed, PodView, RevisionView
from octavo_operator.replica_count import ReplicaCounts, Wanted
from octavo_operator.testing import llm_deployment

DEFAULTS = RenderDefaults(image="octavo/runtime:1", operator_version="1.0")
AUTO = {"mode": "Auto", "auto": {"maxReplicas": 3, "targets": {"waitingRequests": 2}}}


def observed(now: float = 1000.0, pods: int = 1, status: dict[str, Any] | None = None, **spec: Any) -> Observed:
    raw = llm_deployment(**spec) | ({"status": status} if status else {})
    seen = tuple(
        PodView(f"pod-{n}", f"uid-{n}", "aa", 0.0, "Running", True, True, None, False, ip="10.0.0.1")
        for n in range(pods)
    )
    revision = RevisionView("aa", 1, {}, replicas=pods, pods=seen)
    return Observed(now=now, deployment=parse(raw), cluster=ClusterView(), revisions=(revision,))


def count(counts: ReplicaCounts, seen: Observed) -> Wanted:
    return counts.wanted(seen, decide(seen.deployment, seen.cluster, DEFAULTS), 600.0)


def waiting(requests: float, at: float = 1000.0) -> ReplicaCounts:
    return ReplicaCounts(lambda _uid: TimedSample(at, Sample(requests, 1.0, 0.1)))


def test_fixed_is_the_specs_number() -> None:
    assert count(waiting(50), observed(replicas=4)).replicas == 4
    assert count(waiting(50), observed()).replicas == 1


def test_external_is_the_number_that_scale_wrote() -> None:
    assert count(waiting(50), observed(replicas=3, scaling={"mode": "External"})).replicas == 3


def test_suspended_is_none() -> None:
    assert count(waiting(50), observed(replicas=4, suspend=True)).replicas == 0
    assert count(waiting(50), observed(scaling=AUTO, suspend=True)).replicas == 0


def test_auto_rises_with_what_waits_and_says_why() -> None:
    wanted = count(waiting(20), observed(scaling=AUTO))
    assert wanted.replicas == 2
    assert wanted.facts is not None
    assert [(entry["from"], entry["to"]) for entry in wanted.facts.decisions] == [(1, 2)]


def test_auto_keeps_its_number_while_suspended() -> None:
    counts = waiting(50)
    assert count(counts, observed(pods=3, status={"scaling": {"desired": 3}}, scaling=AUTO)).replicas == 3
    asleep = count(counts, observed(pods=0, scaling=AUTO, suspend=True))
    assert (asleep.replicas, asleep.facts.desired if asleep.facts else None) == (0, 3)
    assert count(counts, observed(pods=0, scaling=AUTO)).replicas == 3


def test_after_a_restart_auto_goes_on_from_the_status() -> None:
    status = {"scaling": {"desired": 3, "decisions": []}}
    assert count(waiting(0), observed(pods=3, status=status, scaling=AUTO)).replicas == 3


def test_without_metrics_the_number_is_held() -> None:
    wanted = count(ReplicaCounts(lambda _uid: None), observed(pods=2, scaling=AUTO))
    assert wanted.replicas == 2
    assert wanted.facts is not None
    assert not wanted.facts.fresh
