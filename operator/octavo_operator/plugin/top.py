"""`kubectl octavo top [NAME]`: how full each pod is: KV cache, queue, tokens a second, read from the pods themselves."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.text import Text

from octavo_operator.autoscaling.metrics_text import parse
from octavo_operator.observed import PodView
from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.layout import aligned, say

_GENERATED = ("vllm:generation_tokens_total", "vllm:generation_tokens")
_FULL = 0.9


@dataclass(frozen=True, slots=True)
class Load:
    """One reading of one pod; None: it did not say."""

    at: float
    phase: str = ""
    kv_usage: float | None = None
    waiting: float | None = None
    running: float | None = None
    generated: float | None = None  # tokens since it started


@dataclass(frozen=True, slots=True)
class PodLoad:
    """A pod between two readings."""

    pod: PodView
    first: Load
    last: Load

    @property
    def tokens_per_second(self) -> float | None:
        if self.first.generated is None or self.last.generated is None or self.last.at <= self.first.at:
            return None
        return max(0.0, self.last.generated - self.first.generated) / (self.last.at - self.first.at)


async def top(cluster: Cluster, name: str | None, *, interval: float, console: Console) -> int:
    """Read every pod twice, `interval` seconds apart."""
    all_names = [name] if name else [raw["metadata"]["name"] for raw in await cluster.deployments(everywhere=False)]
    if name:
        await cluster.deployment(name)
    pods = [pod for each in all_names for pod in await cluster.serving_pods(each)]
    if not pods:
        raise PluginError(
            f"Nothing serves in namespace {cluster.namespace}; `kubectl octavo status` says what is asked."
        )
    first = await _read_all(cluster, pods)
    await asyncio.sleep(interval)
    last = await _read_all(cluster, pods)
    say(console, table([PodLoad(*each) for each in zip(pods, first, last, strict=True)]))
    return 0


async def _read_all(cluster: Cluster, pods: Iterable[PodView]) -> list[Load]:
    return list(await asyncio.gather(*(_read(cluster, pod.name) for pod in pods)))


async def _read(cluster: Cluster, pod: str) -> Load:
    status, metrics = await asyncio.gather(cluster.page(pod, "status"), cluster.page(pod, "metrics"))
    return load_of(status, metrics, time.time())


def load_of(status: str | None, metrics: str | None, at: float) -> Load:
    """From what `/status` and `/metrics` gave; pages that cannot be read count as no answer."""
    phase = _phase(status)
    if metrics is None:
        return Load(at, phase)
    try:
        sample, generated = parse(metrics), _generated(metrics)
    except ValueError:
        return Load(at, phase)
    return Load(at, phase, sample.kv_usage, sample.waiting, sample.running, generated)


def table(loads: Sequence[PodLoad]) -> list[Text]:
    """A line per pod; of the columns the numbers are at the right."""
    header = [Text(title, "bold") for title in ("POD", "PHASE", "KV %", "WAITING", "RUNNING", "TOK/S")]
    return aligned([header, *(_row(load) for load in loads)], right=range(2, len(header)))


def _row(load: PodLoad) -> list[Text]:
    return [
        Text(load.pod.name),
        Text(load.last.phase or "no answer", "" if load.pod.ready else "yellow"),
        _usage(load.last.kv_usage),
        _whole(load.last.waiting),
        _whole(load.last.running),
        _whole(load.tokens_per_second),
    ]


def _usage(share: float | None) -> Text:
    return Text("-") if share is None else Text(f"{100 * share:.0f}", "red" if share >= _FULL else "")


def _whole(number: float | None) -> Text:
    return Text("-" if number is None else f"{number:,.0f}")


def _phase(status: str | None) -> str:
    try:
        told = msgspec.json.decode(status or "")
    except msgspec.DecodeError:
        return ""
    return str(told.get("phase", "")) if isinstance(told, dict) else ""


def _generated(metrics: str) -> float | None:
    """Summed over model names; None when the series is not there. Only its lines are parsed: a page has hundreds."""
    lines = [line for line in metrics.splitlines() if line.startswith(_GENERATED)]
    values = [
        sample.value
        for family in text_string_to_metric_families("\n".join(lines) + "\n")
        for sample in family.samples
        if sample.name in _GENERATED
    ]
    return sum(values) if values else None
