"""How far a pod is that starts well: what the runtime says of itself on `/status`, as a finding and as bytes."""

from dataclasses import dataclass

from octavo_operator.observed import PodView, RuntimeView
from octavo_operator.quantity import format_bytes
from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding

_PHASES = {
    "Resolving": (Reason.STARTING, "Finding the model"),  # which the operator has resolved long before
    "Downloading": (Reason.DOWNLOADING, "Downloading the weights"),
    "Loading": (Reason.LOADING, "Loading the weights"),
    "WarmingUp": (Reason.WARMING_UP, "Running the first steps"),
    "Ready": (Reason.WARMING_UP, "Waiting for the kubelet to see it ready"),
    "Draining": (Reason.DRAINING, "Finishing its last streams"),
    "Failed": (Reason.ENGINE_FAILED, "The engine has ended"),
}


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes done of all. Told in whole percent, so that a status changes a hundred times and not a thousand."""

    done: int
    total: int

    @property
    def percent(self) -> int:
        return min(100, 100 * self.done // self.total)

    def __str__(self) -> str:
        return f"{self.percent} % of {format_bytes(self.total)}"


def starting(pod: PodView) -> Finding | None:
    """What a running pod that is not ready does; None for a ready one."""
    container = pod.container
    if pod.ready or container.running_since is None:
        return None
    runtime = answer(pod)
    if runtime is None:
        return Finding(Reason.STARTING, "Its container runs and has not answered yet.", since=container.running_since)
    if runtime.phase not in _PHASES:
        return Finding(Reason.STARTING, "The kubelet has not seen it ready yet.", since=container.running_since)
    reason, doing = _PHASES[runtime.phase]
    progress = progress_of(runtime)
    message = f"{doing}: {progress}." if progress else f"{doing}."
    return Finding(reason, message, since=container.running_since)


def answer(pod: PodView) -> RuntimeView | None:
    """What the runtime said, unless the container has been started again since."""
    runtime, since = pod.runtime, pod.container.running_since
    if runtime is None or since is None or runtime.at < since:
        return None
    return runtime


def progress_of(runtime: RuntimeView) -> Progress | None:
    """Bytes of the present phase, where it counts any."""
    progress = runtime.status.get("progress") or {}
    done, total = progress.get("done_bytes"), progress.get("total_bytes")
    if not isinstance(done, int) or not isinstance(total, int) or total <= 0:
        return None
    return Progress(done, total)
