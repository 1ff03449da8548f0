"""What holds for every situation, however odd: kstatus stays unambiguous, Ready never lies, time alone writes nothing."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replaced

from octavo_operator.observed import ContainerView, EventView, PodView, RevisionView, RuntimeView
from octavo_operator.reasons import FROM_CAUSE, Reason
from octavo_operator.status.finding import Finding
from octavo_operator.status.judge import judge
from octavo_operator.status.report import report
from octavo_operator.status.situation import RolloutFacts, Situation

NOW = 1_800_000_000.0
HASHES = ("aaaaaaaaaa", "bbbbbbbbbb")
times = st.none() | st.floats(NOW - 1000, NOW)
words = st.sampled_from(
    ("", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", 'secret "x" not found', "hf_SecretSecret")
)
terminations = st.sampled_from(
    ("", "Traceback", *(json.dumps({"cause": cause, "message": "x"}) for cause in FROM_CAUSE))
)
containers = st.builds(
    ContainerView,
    waiting_reason=st.sampled_from(("", "CrashLoopBackOff", "ImagePullBackOff", "ContainerCreating", "Odd")),
    waiting_message=words,
    running_since=times,
    terminated_reason=st.sampled_from(("", "OOMKilled", "Error", "Completed")),
    terminated_message=terminations,
    exit_code=st.none() | st.integers(0, 255),
    finished_at=times,
    restarts=st.integers(0, 5),
)
progress = st.fixed_dictionaries(
    {"done_bytes": st.none() | st.integers(0, 9), "total_bytes": st.none() | st.integers(0, 9)}
)
runtimes = st.builds(
    RuntimeView,
    at=st.floats(NOW - 1000, NOW),
    phase=st.sampled_from(("", "Downloading", "Loading", "Ready", "Draining", "New")),
    status=st.fixed_dictionaries({"progress": st.none() | progress}),
)
event_reasons = st.sampled_from(("FailedMount", "Unhealthy", "Pulling"))
events = st.builds(EventView, event_reasons, words, st.floats(NOW - 1000, NOW))
pods = st.builds(
    PodView,
    name=st.sampled_from(("a", "b", "c", "d")),
    uid=st.just("u"),
    revision=st.just(""),
    created_at=st.floats(NOW - 1000, NOW),
    phase=st.sampled_from(("Pending", "Running", "Succeeded", "Failed")),
    ready=st.booleans(),
    routed=st.booleans(),
    drain_started_at=times,
    terminating=st.booleans(),
    node=st.sampled_from(("", "octavo-1")),
    scheduled_message=words,
    scheduled_at=times,
    ready_at=times,
    status_reason=st.sampled_from(("", "Evicted", "NodeLost", "OutOfcpu")),
    container=containers,
    runtime=st.none() | runtimes,
    events=st.lists(events, max_size=2).map(tuple),
)
findings = st.builds(Finding, st.sampled_from(Reason), words, st.none() | st.booleans())
failures = st.none() | st.fixed_dictionaries(
    {"reason": st.sampled_from(("CrashLoop", "Odd", "")), "at": st.just("never")}
)


@st.composite
def situations(draw: st.DrawFn, build: Any) -> Situation:
    views = []
    for number, revision in enumerate(HASHES):
        own = tuple(replace(pod, revision=revision) for pod in draw(st.lists(pods, max_size=3)))
        error = draw(st.sampled_from(("", "exceeded quota: q, requested: a=1, used: a=1, limited: a=1")))
        views.append(
            RevisionView(revision, number, {}, draw(st.integers(0, 3)), own, failure=draw(failures), create_error=error)
        )
    rollout = RolloutFacts(done=draw(st.booleans()), paused=draw(st.booleans()), started_at=draw(times))
    return build.situation(
        *views,
        deployment=build.deployment(suspend=draw(st.booleans())),
        desired=draw(st.integers(0, 3)),
        wanted=draw(st.sampled_from(("", *HASHES))),
        target=draw(st.sampled_from(("", *HASHES))),
        findings=tuple(draw(st.lists(findings, max_size=2))),
        rollout=rollout,
    )


@given(st.data())
def test_every_situation_is_judged_without_contradiction(build: Any, data: st.DataObject) -> None:
    situation = data.draw(situations(build))
    judgement = judge(situation)
    holds = {condition.type.value: condition.status for condition in judgement.conditions}
    assert not (holds["Stalled"] and holds["Reconciling"])
    assert not (holds["Stalled"] and holds["Ready"])
    assert not (holds["Degraded"] and not holds["Available"])
    if holds["Ready"]:
        assert judgement.counts.updated_ready == situation.desired
        assert judgement.counts.old == 0
        assert situation.wanted == situation.target != ""
        assert not any(finding.crashed for finding in judgement.findings)
    if not (holds["Ready"] or holds["Stalled"] or situation.suspended):
        assert holds["Reconciling"], "neither done, nor stuck, nor under way"


@given(st.data())
def test_a_written_status_is_not_written_again(build: Any, data: st.DataObject) -> None:
    situation = data.draw(situations(build))
    first = report(situation, judge(situation))
    written = replaced(situation.observed.deployment, status=json.loads(json.dumps(first)))
    again = replace(situation, observed=replace(situation.observed, deployment=written))
    assert report(again, judge(again)) == first


@given(st.data())
def test_no_situation_leaks_a_secret(build: Any, data: st.DataObject) -> None:
    situation = data.draw(situations(build))
    assert "SecretSecret" not in json.dumps(report(situation, judge(situation)))
