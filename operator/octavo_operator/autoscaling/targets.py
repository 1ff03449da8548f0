"""`Target`: a pod to ask, what for, and how often. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.effective import PORT
from octavo_operator.observed import PodView, RuntimeView

CLOSE_SECONDS = 1.0  # a pod that starts or drains: somebody waits for it
LOAD_SECONDS = 2.0  # a pod whose load decides the number of replicas
IDLE_LOAD_SECONDS = 15.0  # while it has no work
FAR_SECONDS = 15.0  # any other: who is the least busy
IDLE_FAR_SECONDS = 60.0
RETRY_SECONDS = 5.0  # between tries of a starting pod that does not answer


@dataclass(frozen=True, slots=True)
class Target:
    """One pod."""

    uid: str
    name: str
    host: str
    tls: bool = False
    starting: bool = False
    draining: bool = False  # carries the drain mark: the runtime shall know
    auto: bool = False  # its load decides the number of replicas
    admin_key: str = field(default="", repr=False)  # empty: the runtime cannot be told

    def url(self, path: str) -> str:
        """Of an endpoint."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{PORT}{path}"

    @property
    def is_close(self) -> bool:
        """Whether somebody waits for each change."""
        return self.starting or self.draining


def targets(pods: Iterable[PodView], auto: bool, tls: bool, admin_key: str) -> tuple[Target, ...]:
    """Of the pods that can answer."""
    return tuple(
        Target(
            uid=pod.uid,
            name=pod.name,
            host=pod.ip,
            tls=tls,
            starting=not pod.ready,
            draining=pod.drain_started_at is not None,
            auto=auto,
            admin_key=admin_key,
        )
        for pod in pods
        if pod.ip and pod.phase == "Running" and not pod.terminating
    )


def agrees(target: Target, view: RuntimeView | None) -> bool:
    """Whether the runtime drains exactly if it shall; one that does not serve yet has nothing to drain."""
    if view is None or not target.admin_key or view.phase not in ("Ready", "Draining"):
        return True
    return bool(view.status.get("draining")) == target.draining


def period(target: Target, view: RuntimeView | None, sample: Sample | None, failures: int) -> float:
    """Seconds until the next question."""
    if target.is_close or not agrees(target, view):
        return min(RETRY_SECONDS, CLOSE_SECONDS * 2 ** min(failures, 3)) if failures else CLOSE_SECONDS
    idle = not failures and _is_idle(view, sample)
    if target.auto:
        return IDLE_LOAD_SECONDS if idle else LOAD_SECONDS
    return IDLE_FAR_SECONDS if idle else FAR_SECONDS


def _is_idle(view: RuntimeView | None, sample: Sample | None) -> bool:
    if view is None or view.in_flight or view.waiting:
        return False
    return sample is None or not (sample.waiting or sample.running)
