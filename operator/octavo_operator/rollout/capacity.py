"""`headroom`: how many more pods of a shape fit on the nodes and into the quotas, and whether one could fit at all.

Given what one pod asks for (canonical units), its template's spec and the cluster's view. Counts any resource alike:
GPUs, CPU, memory, pods. An estimate: the scheduler has the last word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from octavo_operator.observed import ClusterView, NodeView, PodView, QuotaView
from octavo_operator.quantity import format_quantity
from octavo_operator.rollout import node_fit


@dataclass(frozen=True, slots=True)
class Headroom:
    """Room for more pods, counted up to a limit."""

    on_nodes: int
    in_quota: int | None  # None: no quota speaks of what the pod asks for
    reason: str  # what bounds it, for people
    impossible: str = ""  # one sentence when no node could take the pod even if it were empty
    instead: bool = True  # whether one fits at least in the place of all of our own pods

    @property
    def pods(self) -> int:
        """How many more fit."""
        return self.on_nodes if self.in_quota is None else min(self.on_nodes, self.in_quota)


def headroom(
    requests: Mapping[str, int],
    template_spec: Mapping[str, Any],
    cluster: ClusterView,
    limit: int = 1000,
    limits: Mapping[str, int] | None = None,
    own: Iterable[PodView] = (),
) -> Headroom:
    """`limits`: what the pod's limits sum up to, for quotas on `limits.*`; left out, the same as `requests`.

    `own`: the pods that may make way for it, terminating ones included.
    """
    matching = [node for node in cluster.nodes if node_fit.matches(node, template_spec)]
    usable = [node for node in matching if node.schedulable and node_fit.tolerates(node, template_spec)]
    on_nodes = _fit_on_all(requests, usable, limit)
    quotas = [(_quota_fit(requests, limits or requests, quota), quota.name) for quota in cluster.quotas]
    bounds = [(fit, name) for fit, name in quotas if fit is not None]
    in_quota, quota_name = min(bounds, default=(None, ""))
    return Headroom(
        on_nodes=on_nodes,
        in_quota=None if in_quota is None else min(limit, in_quota),
        reason=_reason(requests, usable, bool(matching), on_nodes, in_quota, quota_name),
        impossible=_impossible(requests, matching),
        instead=not cluster.nodes or _fits_instead(requests, limits or requests, usable, cluster.quotas, own),
    )


def _fit_on_all(requests: Mapping[str, int], nodes: Iterable[NodeView], limit: int) -> int:
    """Whole pods on all nodes together, at most `limit`: a large cluster is not counted to its end for two more pods."""
    total = 0
    for node in nodes:
        total += _fit(requests, node)
        if total >= limit:
            return limit
    return total


def _fit(requests: Mapping[str, int], node: NodeView) -> int:
    """Whole pods that the node's free resources hold."""
    counts = [max(0, _free(node, name)) // amount for name, amount in requests.items() if amount > 0]
    return min(counts, default=0)


def _free(node: NodeView, resource: str) -> int:
    return node.allocatable.get(resource, 0) - node.requested.get(resource, 0)


def _quota_fit(requests: Mapping[str, int], limits: Mapping[str, int], quota: QuotaView) -> int | None:
    """Whole pods that the quota still allows; None when it limits nothing that the pod asks for."""
    counts = []
    for key, hard in quota.hard.items():
        amount = _counted(key, requests, limits)
        if amount > 0:
            counts.append(max(0, hard - quota.used.get(key, 0)) // amount)
    return min(counts, default=None)


def _fits_instead(
    requests: Mapping[str, int],
    limits: Mapping[str, int],
    nodes: Iterable[NodeView],
    quotas: Iterable[QuotaView],
    own: Iterable[PodView],
) -> bool:
    """Whether taking our own pods away could make room for one: else it would cost service and gain nothing."""
    held = [pod for pod in own if not pod.has_ended]

    def fits_on(node: NodeView) -> bool:
        ours = [pod.requests for pod in held if pod.node == node.name]
        freed = {name: sum(each.get(name, 0) for each in ours) for name in requests}
        return all(_free(node, name) + freed[name] >= amount for name, amount in requests.items())

    def allows(quota: QuotaView) -> bool:
        for key, hard in quota.hard.items():
            # Of our pods only the requests are known: a bound on limits says no only where it always would.
            used = 0 if key.startswith("limits.") else quota.used.get(key, 0)
            freed = sum(_counted(key, pod.requests, {}) for pod in held)
            amount = _counted(key, requests, limits)
            if amount > 0 and max(0, used - freed) + amount > hard:
                return False
        return True

    return any(map(fits_on, nodes)) and all(map(allows, quotas))


def _counted(key: str, requests: Mapping[str, int], limits: Mapping[str, int]) -> int:
    """What one pod adds to a quota's key."""
    if key in ("pods", "count/pods"):
        return 1
    if key.startswith("requests."):
        return requests.get(key.removeprefix("requests."), 0)
    if key.startswith("limits."):
        return limits.get(key.removeprefix("limits."), 0)
    return requests.get(key, 0)  # cpu, memory, ephemeral-storage: short for requests.*


def _impossible(requests: Mapping[str, int], matching: Iterable[NodeView]) -> str:
    """Names the resource. Nodes that are busy, cordoned or not ready count: they may be free one day."""
    nodes = list(matching)
    if not nodes:
        return ""  # not too large, only nowhere to go: the pod waits for a node
    if any(all(node.allocatable.get(name, 0) >= wanted for name, wanted in requests.items()) for node in nodes):
        return ""
    for name, wanted in _scarcest_first(requests):
        largest = max(node.allocatable.get(name, 0) for node in nodes)
        if largest == 0:
            return ""  # nodes of that kind may yet come: a pool that is scaled to zero
        if wanted > largest:
            return (
                f"A replica asks for {format_quantity(name, wanted)} {name}; "
                f"the largest node that it may use has {format_quantity(name, largest)}."
            )
    shape = ", ".join(f"{format_quantity(name, wanted)} {name}" for name, wanted in _scarcest_first(requests))
    return f"No node has all that a replica asks for together: {shape}."


def _scarcest_first(requests: Mapping[str, int]) -> list[tuple[str, int]]:
    """GPUs and their like (names with a domain) before CPU and memory; the pod itself is no news."""
    wanted = [(name, amount) for name, amount in requests.items() if amount > 0 and name != "pods"]
    return sorted(wanted, key=lambda item: ("/" not in item[0], item[0]))


def _reason(
    requests: Mapping[str, int],
    usable: list[NodeView],
    any_matching: bool,
    on_nodes: int,
    in_quota: int | None,
    quota_name: str,
) -> str:
    if in_quota is not None and in_quota < max(1, on_nodes):
        return f"quota {quota_name} allows {in_quota} more"
    if on_nodes:
        return f"{on_nodes} more {'fits' if on_nodes == 1 else 'fit'} on the nodes"
    if not any_matching:
        return "no node matches the pod's node selector or affinity"
    if not usable:
        return "every node that matches is cordoned, not ready or tainted"
    for name, wanted in _scarcest_first(requests):
        most = max(_free(node, name) for node in usable)
        if wanted > most:
            free = format_quantity(name, max(0, most))
            return f"no node has {format_quantity(name, wanted)} {name} free (at most {free})"
    return "no node has enough of everything free"
