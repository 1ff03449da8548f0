"""`diagnose`: what is the matter with one pod, from its conditions, its container, its events and its runtime.

The first check that finds something wins: what happened to the pod as a whole comes before its container, a crash
before what the container waits for, that before how far it has loaded.
"""

from dataclasses import replace

from octavo_operator import names
from octavo_operator.observed import PodView
from octavo_operator.status.crash import crashed
from octavo_operator.status.finding import Finding
from octavo_operator.status.scheduling import thrown_off, unscheduled
from octavo_operator.status.startup import starting
from octavo_operator.status.waiting import held_up


def diagnose(pod: PodView, now: float, container: str = names.CONTAINER) -> Finding | None:
    """The finding of one pod; None when it is well, or going away anyway."""
    if pod.terminating or pod.drain_started_at is not None:
        return None
    finding = thrown_off(pod) or unscheduled(pod) or crashed(pod, now) or held_up(pod) or starting(pod)
    if finding is None:
        return None
    return replace(finding, pod=pod.name, container=container if finding.crashed else "")
