"""`parse`: the three gauges of a serving pod that scaling reads, out of its whole metrics page.

Takes Prometheus' text format and OpenMetrics. A series that is absent is None, never 0: a pod that says nothing about
its queue does not have an empty one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families

_WAITING = "vllm:num_requests_waiting"
_RUNNING = "vllm:num_requests_running"
_KV_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")  # the new name, then the old one

_PREFIXES = (_WAITING, _RUNNING, *_KV_USAGE)


@dataclass(frozen=True, slots=True)
class Sample:
    """What one pod says of itself."""

    waiting: float | None = None  # requests in its queue
    running: float | None = None  # requests in its batch
    kv_usage: float | None = None  # 0..1 of its KV cache


def parse(text: str) -> Sample:
    """Of a page of `/metrics`. Raises ValueError for lines of these series that cannot be read.

    Only their lines are parsed: a page has hundreds of others, and a thousand pods are read again and again.
    """
    lines = [line for line in text.splitlines() if line.startswith(_PREFIXES)]
    values: dict[str, list[float]] = {}
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            if isfinite(sample.value):
                values.setdefault(sample.name, []).append(sample.value)
    usage = next((values[name] for name in _KV_USAGE if name in values), None)
    return Sample(
        waiting=_sum(values.get(_WAITING)),
        running=_sum(values.get(_RUNNING)),
        kv_usage=None if usage is None else sum(usage) / len(usage),
    )


def _sum(values: Iterable[float] | None) -> float | None:
    """Of several engines in one pod."""
    return None if values is None else sum(values)
