"""`StartState`: how far a starting process is, for /status, log lines and the sentence of a missed deadline.

Written by whatever is at work (download, engine), read by whoever asks; one event loop, so no lock. Knows neither HTTP
nor files.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from octavo_runtime.byte_size import size
from octavo_runtime.engine.messages import LoadProgress
from octavo_runtime.errors import StartCause, StartError


class Phase(StrEnum):
    """The life of a serving process, in order; DRAINING and FAILED can follow any of them."""

    RESOLVING = "Resolving"
    DOWNLOADING = "Downloading"
    LOADING = "Loading"
    WARMING_UP = "WarmingUp"
    READY = "Ready"
    DRAINING = "Draining"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of the model; None: not yet, or the files do not say."""

    name: str
    revision: str | None = None  # the commit
    architecture: str | None = None
    quantization: str | None = None
    weight_bytes: int | None = None  # on disk


@dataclass(frozen=True, slots=True)
class Problem:
    """What the start waits for, and what it would end with if it waited too long."""

    cause: StartCause
    message: str


_TIMED = {
    Phase.RESOLVING: "resolve_seconds",
    Phase.DOWNLOADING: "download_seconds",
    Phase.LOADING: "load_seconds",
}
_WARM_UP_STEPS = ("cache", "warm-up")  # of LoadProgress


class StartState:
    """Phase, bytes, timings (seconds) and what is in the way."""

    def __init__(self, model_name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.phase = Phase.RESOLVING
        self.model = ModelFacts(model_name)
        self.done_bytes = 0
        self.total_bytes: int | None = None
        self.problem: Problem | None = None
        self.timings: dict[str, float] = {}
        self._clock = clock
        self._entered = clock()

    def enter(self, phase: Phase) -> None:
        """The next phase begins: its bytes start at 0, the time of the one before is kept."""
        now = self._clock()
        timing = _TIMED.get(self.phase)
        if timing is not None:
            self.timings[timing] = self.timings.get(timing, 0.0) + now - self._entered
        self.phase, self._entered = phase, now
        self.done_bytes, self.total_bytes, self.problem = 0, None, None

    def found(self, model: ModelFacts) -> None:
        """The model lies on this machine's disk."""
        self.enter(Phase.LOADING)
        self.timings.setdefault("download_seconds", 0.0)
        self.model = model

    def loading(self, progress: LoadProgress) -> None:
        """What the engine process tells of its start."""
        if progress.phase in _WARM_UP_STEPS:
            if self.phase is Phase.LOADING:
                self.enter(Phase.WARMING_UP)
            return
        self.done_bytes, self.total_bytes = progress.done_bytes, progress.total_bytes or None

    def ready(self, laps: Mapping[str, float], architecture: str) -> None:
        """The engine has run a step; `laps` are its own seconds per phase."""
        self.enter(Phase.READY)
        self.timings |= {"compile_seconds": laps.get("cache", 0.0), "warmup_seconds": laps.get("warm-up", 0.0)}
        self.model = replace(self.model, architecture=architecture or self.model.architecture)

    def too_late(self, budget: float) -> StartError:
        """The budget of `budget` seconds is spent: what was in the way, if that is known, else where it was."""
        if self.problem is not None:
            return StartError(self.problem.cause, self.problem.message)
        message = (
            f"{self.model.name} was not ready within {budget:.0f} s (--startup-timeout); it was at: {self.describe()}. "
            "Give it more time, or look at what is slow."
        )
        return StartError(StartCause.STARTUP_DEADLINE_EXCEEDED, message)

    def describe(self) -> str:
        """The phase and its bytes, for a sentence."""
        if not self.done_bytes and not self.total_bytes:
            return str(self.phase)
        total = f" of {size(self.total_bytes)}" if self.total_bytes else ""
        return f"{self.phase}, {size(self.done_bytes)}{total} done"
