"""Counts tell the revision that is rolled to from the rest, and pods that serve from pods that exist."""

from typing import Any

from octavo_operator.status.counts import Counts, count


def test_only_serving_pods_of_the_target_are_updated_and_ready(build: Any) -> None:
    old = (build.pod("old-1", build.old), build.pod("old-2", build.old, terminating=True))
    new = (build.pod("new-1"), build.starting("new-2"), build.starting("new-3", phase="Failed"))
    situation = build.situation(build.revision(build.old, *old, number=1), build.revision(build.new, *new))
    assert count(situation) == Counts(replicas=3, ready=2, updated=2, updated_ready=1, draining=0, old=2)


def test_a_draining_pod_is_a_replica_that_no_longer_serves(build: Any) -> None:
    leaving = build.pod("new-2", routed=False, drain_started_at=build.now - 5)
    counts = count(build.situation(build.revision(build.new, build.pod("new-1"), leaving)))
    assert (counts.replicas, counts.ready, counts.draining, counts.old) == (2, 1, 1, 0)


def test_nothing_is_there_at_first(build: Any) -> None:
    assert count(build.situation(build.revision(build.new), target="")) == Counts(0, 0, 0, 0, 0, 0)
