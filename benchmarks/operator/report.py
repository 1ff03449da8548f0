"""Readings -> what is kept of them, and the table of the results page."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.operator.figures import Spent, percentile, quantile

COMMAND = "PYTHONPATH=. .venv/bin/python -m benchmarks.operator.bench_scale"
RECONCILE = "octavo_operator_reconcile_seconds"
AGE = "octavo_operator_event_age_seconds"
REQUESTS = "octavo_operator_api_requests_total"
MIB = 1 << 20

Entry = Mapping[str, Any]
"""One size: creating, idle, changing."""


def record_of(done: Spent, objects: int) -> dict[str, Any]:
    """What one phase cost the operator; `objects`: LLMDeployments (or changes) that it was about."""
    buckets, ages = done.buckets(RECONCILE), done.buckets(AGE)
    return {
        "measured_seconds": done.seconds,
        "cpu_seconds": done.cpu,
        "cpu_share": done.cpu_share,
        "reconciles": done.total(f"{RECONCILE}_count"),
        "reconcile_errors": done.by_label("octavo_operator_reconcile_errors_total", "reason"),
        "reconcile_p50": _known(quantile(buckets, 0.5)),
        "reconcile_p99": _known(quantile(buckets, 0.99)),
        "reconcile_buckets": [(str(bound), count) for bound, count in buckets],
        "queue_p99": _known(quantile(ages, 0.99)),
        "api_calls": done.total(REQUESTS),
        "api_calls_per_object": done.total(REQUESTS) / objects,
        "api_calls_by_kind": done.by_label(REQUESTS, "verb", "kind"),
        "api_calls_by_code": done.by_label(REQUESTS, "code"),
    }


def written(done: Spent) -> float:
    """Statuses."""
    return done.by_label(REQUESTS, "verb", "kind").get("patch LLMDeployment", 0.0)


def table(result: Mapping[str, Any]) -> str:
    """The results page."""
    entries: Sequence[Entry] = result["entries"]
    empty, sizes = entries[0], entries[1:]
    loads = ", ".join(str(entry["load"]) for entry in entries)

    def per_object(entry: Entry) -> str:
        return f"{(entry['rss_bytes'] - empty['rss_bytes']) / entry['objects'] / 1024:.0f}"

    rows: Sequence[tuple[str, Callable[[Entry], str]]] = (
        ("memory, MiB", lambda entry: f"{entry['rss_bytes'] / MIB:.0f}"),
        ("memory per object, KiB", per_object),
        ("**idle**: CPU, % of a core", lambda entry: f"{100 * entry['idle']['cpu_share']:.2f}"),
        ("API calls per object and minute", _calls_a_minute),
        ("**a pod changes**: seconds to status, p50", lambda entry: f"{percentile(_latencies(entry), 0.5):.3f}"),
        ("p95", lambda entry: f"{percentile(_latencies(entry), 0.95):.3f}"),
        ("largest", lambda entry: f"{max(_latencies(entry)):.3f}"),
        ("API calls per change", lambda entry: f"{entry['changing']['api_calls_per_object']:.1f}"),
        ("**reconciles** while idle and changing, p50, ms", lambda entry: f"{1000 * _steady(entry, 0.5):.1f}"),
        ("p99, ms", lambda entry: f"{1000 * _steady(entry, 0.99):.1f}"),
        ("**created at once**: objects a second until ready", _created_a_second),
        ("API calls per object", lambda entry: f"{entry['creating']['api_calls_per_object']:.1f}"),
        ("operator CPU per object, ms", lambda entry: _cpu_per_object(entry, "cpu_seconds")),
        ("etcd and API server CPU per object, ms", lambda entry: _cpu_per_object(entry, "api_server_cpu_seconds")),
        ("reconciles p50, ms", lambda entry: f"{1000 * entry['creating']['reconcile_p50']:.1f}"),
        ("p99, ms", lambda entry: f"{1000 * entry['creating']['reconcile_p99']:.1f}"),
    )
    head = [
        f"The operator with many LLMDeployments of one replica: `{result['command']}`.",
        f"{result['machine']}; load average {loads} along the way.",
        "One operator with default settings. etcd, API server, Deployment and ReplicaSet controllers are real; nodes, kubelets",
        "and runtimes are played; all on the same cores, so while everything is created at once the operator waits for the",
        f"API server. Without LLMDeployments it holds {empty['rss_bytes'] / MIB:.0f} MiB.",
        "",
        "| | " + " | ".join(f"{entry['objects']:,}" for entry in sizes) + " |",
        "|---|" + "---:|" * len(sizes),
    ]
    lines = [f"| {name} | " + " | ".join(cell(entry) for entry in sizes) + " |" for name, cell in rows]
    return "\n".join([*head, *lines]) + "\n"


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value


def _steady(entry: Entry, share: float) -> float:
    """Of the reconciles of both phases in which everything is there."""
    counts: dict[float, float] = {}
    for phase in ("idle", "changing"):
        for bound, count in entry[phase]["reconcile_buckets"]:
            counts[float(bound)] = counts.get(float(bound), 0.0) + count
    return quantile(sorted(counts.items()), share)


def _created(entry: Entry) -> float:
    return float(entry["creating"]["api_calls"] / entry["creating"]["api_calls_per_object"])


def _created_a_second(entry: Entry) -> str:
    return f"{_created(entry) / entry['creating']['seconds']:.1f}"


def _cpu_per_object(entry: Entry, field: str) -> str:
    return f"{1000 * entry['creating'][field] / _created(entry):.0f}"


def _calls_a_minute(entry: Entry) -> str:
    idle = entry["idle"]
    return f"{60 * idle['api_calls_per_object'] / idle['measured_seconds']:.3f}"


def _latencies(entry: Entry) -> Sequence[float]:
    found: Sequence[float] = entry["changing"]["latencies"]
    return found
