"""Cheap instruments that `metrics.py` is built of: a histogram, a rate, and the buckets of vLLM's histograms.

Plain numbers without locks: one thread (the event loop) writes and scrapes them.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

TTFT_BUCKETS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
)  # fmt: skip
TOKEN_BUCKETS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
REQUEST_BUCKETS = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
STEP_TOKEN_BUCKETS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
COUNT_BUCKETS = (1, 2, 5, 10, 20)
PREEMPTION_BUCKETS = (1, 2, 3, 4, 5, 10, 20)
_RATE_WINDOW = 10.0  # seconds over which the throughput gauges average


def length_buckets(max_len: int) -> tuple[int, ...]:
    """1, 2, 5, 10, 20, 50 ... up to `max_len` tokens."""
    buckets = []
    scale = 1
    while scale <= max_len:
        buckets += [digit * scale for digit in (1, 2, 5) if digit * scale <= max_len]
        scale *= 10
    return tuple(buckets)


class Histogram:
    """Counts per bucket and a sum; cheap to observe (one binary search)."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def cumulative(self) -> tuple[list[tuple[str, float]], float]:
        """Buckets as Prometheus wants them: (upper bound, observations up to it); and the sum."""
        total = 0
        buckets: list[tuple[str, float]] = []
        for bound, count in zip((*map(str, map(float, self._bounds)), "+Inf"), self._counts, strict=True):
            total += count
            buckets.append((bound, total))
        return buckets, self._sum


class Rate:
    """Tokens per second over the last window of a growing total."""

    __slots__ = ("_points",)

    def __init__(self, now: float) -> None:
        self._points = deque([(now, 0)])  # (time, total), about one a second

    def update(self, now: float, total: int) -> None:
        """The total is `total` now; called at every step."""
        if now - self._points[-1][0] >= _RATE_WINDOW / 10:
            self._points.append((now, total))
            self._forget(now)

    def value(self, now: float, total: int) -> float:
        """Tokens per second over the window before `now`."""
        self._forget(now)
        start, before = self._points[0]
        return (total - before) / min(_RATE_WINDOW, max(now - start, 1.0))

    def _forget(self, now: float) -> None:
        """Keep one point at or before the window's start."""
        while len(self._points) > 1 and self._points[1][0] <= now - _RATE_WINDOW:
            self._points.popleft()
