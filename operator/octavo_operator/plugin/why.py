"""`kubectl octavo why NAME`: the chain from the LLMDeployment down to the root cause, and what to do about it.

One statement per pod: what its objects say now, or what it last told the operator, who alone asks it. Both side by side
would contradict each other whenever one of them is older.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from octavo_operator import names
from octavo_operator.conditions import condition
from octavo_operator.explanations import EXPLANATIONS
from octavo_operator.observed import PodView
from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.layout import hanging, say
from octavo_operator.plugin.said import Said
from octavo_operator.plugin.tree import Node, drawn
from octavo_operator.reasons import Reason
from octavo_operator.status.conditions import ConditionType
from octavo_operator.status.finding import Finding
from octavo_operator.status.redaction import redact
from octavo_operator.status.severity import worst
from octavo_operator.status.signals import diagnose
from octavo_operator.status.situation import serves

_SAID_BY_PODS = frozenset({Reason.DOWNLOADING, Reason.LOADING, Reason.WARMING_UP})
_NOT_SEEN = "Check that the operator runs: kubectl get pods -A -l app.kubernetes.io/name=octavo-operator."
_LISTED = 3  # names in a sentence


@dataclass(frozen=True, slots=True)
class Explained:
    """A chain, its remedy, and whether all is well."""

    root: Node
    remedy: str
    well: bool


async def why(cluster: Cluster, name: str, console: Console) -> int:
    """Print the chain. Exit code 0 when the model serves as asked, 1 when it does not."""
    raw = await cluster.deployment(name)
    explained = explain(raw, await cluster.pods(name), time.time())
    say(console, rendered(explained, console.width, ascii_only=console.options.ascii_only))
    return 0 if explained.well else 1


def explain(raw: Mapping[str, Any], pods: Sequence[PodView], now: float) -> Explained:
    """Pure: the resource as last reported, its pods as they are now."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    ready = condition(status, "Ready")
    title = f"LLMDeployment {metadata['namespace']}/{metadata['name']}"
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        seen = status.get("observedGeneration", "none")
        cause = Node(
            f"The operator has not seen generation {metadata.get('generation')} yet; the last was {seen}.", "yellow"
        )
        return Explained(Node(title, "bold", (cause,)), _NOT_SEEN, well=False)
    title = f"{title}: {status.get('phase', '?')}, {status.get('ready', '?')} ready"
    if ready.get("status") == "True":
        served = Node(str(ready.get("message", "")), "green")
        return Explained(Node(title, "bold", (served, *_leaving(pods), *_notices(status))), "", well=True)
    said = Said.of(status)
    found = {pod.name: finding for pod in pods if (finding := _finding(pod, now, said)) is not None}
    revisions = tuple(_revision_nodes(status, pods, found))
    well = said.reason is Reason.SUSPENDED
    again = any(finding.reason is said.reason for finding in found.values())
    if said.pod and again:  # else it says more than the pod does, such as that a revision was given up
        return Explained(Node(title, "bold", revisions), said.remedy, well)
    if any(pod.name == said.pod for pod in pods):  # it has gone on since, and its own node says how
        newest = worst(found.values())
        return Explained(Node(title, "bold", revisions), newest.remedy if newest else "", well)
    own = Node(f"{said.word}: {said.beside(found.values())}", _style(said.reason))
    return Explained(Node(title, "bold", (own, *revisions)), said.remedy, well)


def rendered(explained: Explained, width: int, *, ascii_only: bool = False) -> list[Text]:
    """A tree, then the remedy as the last."""
    tree = drawn(explained.root, width, ascii_only=ascii_only)
    if explained.well:
        return tree
    remedy = explained.remedy or "Nothing: it goes on by itself."
    return [*tree, *hanging(Text("What to do: ", "bold"), redact(remedy), width, below="")]


def _notices(status: Mapping[str, Any]) -> Iterable[Node]:
    """What a model that serves has to tell beside."""
    for kind in (ConditionType.FEATURE_UNAVAILABLE, ConditionType.UPGRADE_AVAILABLE):
        found = condition(status, kind)
        if found.get("status") == "True":
            yield Node(f"{found.get('reason')}: {found.get('message')}", "yellow")


def _revision_nodes(status: Mapping[str, Any], pods: Sequence[PodView], found: Mapping[str, Finding]) -> Iterable[Node]:
    """Revisions that have pods with something to tell; the target first."""
    target = status.get("revisions", {}).get("target", {}).get("hash", "")
    for revision in sorted({pod.revision for pod in pods}, key=lambda each: (each != target, each)):
        own = sorted((pod for pod in pods if pod.revision == revision), key=lambda pod: pod.name)
        troubled = [(pod, found[pod.name]) for pod in own if pod.name in found]
        well = sum(_is_well(pod) and pod.name not in found for pod in own)
        nodes = [_pod_node(pod, finding) for pod, finding in troubled]
        if well > 0:
            nodes.append(Node(f"{well} pod{'s' if well > 1 else ''} ready", "green"))
        nodes += _leaving(own)
        if nodes:
            yield Node(_revision_title(revision, target), "", tuple(nodes))


def _leaving(pods: Sequence[PodView]) -> Iterable[Node]:
    """Pods that get no new requests: they count as ready nowhere, and nothing is the matter with them."""
    leaving = [pod.name for pod in pods if pod.revision and not pod.has_ended and _is_leaving(pod)]
    if not leaving:
        return
    named = ", ".join(leaving[:_LISTED]) + (f" and {len(leaving) - _LISTED} more" if len(leaving) > _LISTED else "")
    one = len(leaving) == 1
    what = "1 pod goes once its streams are" if one else f"{len(leaving)} pods go once their streams are"
    yield Node(f"{what} finished: {named}", "yellow")


def _is_well(pod: PodView) -> bool:
    """As the status counts; a downloader serves nobody."""
    return serves(pod) if pod.revision else pod.ready


def _is_leaving(pod: PodView) -> bool:
    return pod.terminating or pod.drain_started_at is not None


def _revision_title(revision: str, target: str) -> str:
    """`target` is empty before the first rollout, which may wait with pods of a revision that nothing replaces."""
    if not revision:
        return "downloader"
    older = bool(target) and revision != target
    return f"revision {revision} (older, being replaced)" if older else f"revision {revision}"


def _finding(pod: PodView, now: float, said: "Said") -> Finding | None:
    """The furthest that is known: of a pod that runs and is not ready, what it told the operator."""
    finding = diagnose(pod, now, names.CONTAINER if pod.revision else names.DOWNLOADER_CONTAINER)
    if finding is None or pod.container.running_since is None:
        return finding
    if said.pod == pod.name and said.reason in _SAID_BY_PODS:
        return Finding(said.reason, said.message, pod=pod.name)
    if finding.reason is Reason.STARTING:
        return replace(finding, message="Its container runs and is not ready yet.")  # nobody here has asked it
    return finding


def _pod_node(pod: PodView, finding: Finding) -> Node:
    """pod -> container -> cause; a pod that has no container yet is its own cause."""
    cause = Node(f"{finding.reason.value}: {finding.message}", _style(finding.reason))
    place = f"pod {pod.name} on node {pod.node}" if pod.node else f"pod {pod.name}, on no node"
    if not finding.container:
        return Node(place, "", (cause,))
    restarts = pod.container.restarts
    ended = "" if finding.exit_code is None else f": exit code {finding.exit_code}"
    again = f", restarted {restarts} time{'s' if restarts != 1 else ''}" if restarts else ""
    return Node(place, "", (Node(f"container {finding.container}{ended}{again}", "", (cause,)),))


def _style(reason: Reason | None) -> str:
    return "red" if reason is None or EXPLANATIONS[reason].stalled else "yellow"
