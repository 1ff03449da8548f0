"""What one process costs, from /proc and its Prometheus page: readings, and the difference of two of them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")

Samples = Mapping[str, float]
"""A page: `name{labels}` as it stands there -> value."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The operator at one moment."""

    at: float  # seconds of a monotonic clock
    cpu: float  # seconds since its start
    rss: int  # bytes
    samples: Samples


@dataclass(frozen=True, slots=True)
class Spent:
    """What was done between two readings."""

    seconds: float
    cpu: float
    samples: Samples

    @property
    def cpu_share(self) -> float:
        """Of one core."""
        return self.cpu / self.seconds

    def total(self, name: str) -> float:
        """Over all labels."""
        return sum(value for sample, value in self.samples.items() if sample.partition("{")[0] == name)

    def by_label(self, name: str, *labels: str) -> dict[str, float]:
        """Totals by these labels' values, largest first."""
        found: dict[str, float] = {}
        for sample, value in self.samples.items():
            if value and sample.partition("{")[0] == name:
                of = " ".join(_label(sample, label) for label in labels)
                found[of] = found.get(of, 0.0) + value
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def buckets(self, name: str) -> list[tuple[float, float]]:
        """(upper bound, observations up to it) of a histogram without labels of its own."""
        found = [
            (float(_label(sample, "le").replace("+Inf", "inf")), value)
            for sample, value in self.samples.items()
            if sample.partition("{")[0] == f"{name}_bucket"
        ]
        return sorted(found)


def spent(before: Reading, after: Reading) -> Spent:
    """All counters count up, so a sample that is new began at 0."""
    samples = {name: value - before.samples.get(name, 0.0) for name, value in after.samples.items()}
    return Spent(after.at - before.at, after.cpu - before.cpu, samples)


def parse_page(text: str) -> Samples:
    """Of a Prometheus page; comments are left out."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_bytes(pid: int) -> int:
    """Memory that it holds now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """As Prometheus' histogram_quantile: linear inside the bucket. NaN without observations."""
    total = buckets[-1][1] if buckets else 0.0
    if not total:
        return float("nan")
    lower, below = 0.0, 0.0
    for upper, count in buckets:
        if count >= share * total:
            return (
                lower if upper == float("inf") else lower + (upper - lower) * (share * total - below) / (count - below)
            )
        lower, below = upper, count
    return lower


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many are not above. NaN without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def _label(sample: str, label: str) -> str:
    _, found, rest = sample.partition(f'{label}="')
    return rest.partition('"')[0] if found else ""
