"""Why a container ended: the kernel's kill, the runtime's own cause, a probe's kill, or only an exit code."""

import re
import signal
from dataclasses import dataclass

import msgspec

from octavo_operator.observed import ContainerView, PodView
from octavo_operator.reasons import FROM_CAUSE, Reason
from octavo_operator.status.finding import Finding, ended
from octavo_operator.status.startup import answer

RECENT_SECONDS = 60.0
"""A crash so young still counts, even if the container is ready again."""

_PROBE_SECONDS = 90.0  # a probe's kill follows its last failure by at most the grace period that is left to it
_KILLED_BY_KUBELET = frozenset({0, 137, 143})  # the runtime ends by itself on SIGTERM, or is killed
_ONCE_IS_AN_ACCIDENT = frozenset({Reason.OUT_OF_MEMORY, Reason.ENGINE_STALLED})
_LAST_WORDS = 400


class _Termination(msgspec.Struct):
    """The runtime's termination message."""

    cause: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Ending:
    reason: Reason
    message: str


def crashed(pod: PodView, now: float) -> Finding | None:
    """The last crash, as long as it says more than what the pod does now."""
    if not _matters(pod, now):
        return None
    container = pod.container
    ending = _ending(pod)
    loops = container.waiting_reason == "CrashLoopBackOff" or container.restarts > 1
    if loops and ending.reason is Reason.ENGINE_FAILED:
        ending = _Ending(Reason.CRASH_LOOP, ending.message)
    accident = ending.reason in _ONCE_IS_AN_ACCIDENT and not loops
    repeated = f" It was restarted {container.restarts} times." if container.restarts > 1 else ""
    return Finding(
        ending.reason,
        ended(ending.message) + repeated,
        stalled=False if accident or pod.ready else None,
        exit_code=container.exit_code,
        since=container.finished_at,
        crashed=True,
    )


def is_recent(pod: PodView, now: float) -> bool:
    """Whether its container ended within the last minute."""
    ended = pod.container.finished_at
    return ended is not None and now - ended < RECENT_SECONDS


def _matters(pod: PodView, now: float) -> bool:
    container = pod.container
    if container.finished_at is None or (pod.phase == "Succeeded" and container.exit_code == 0):
        return False
    if pod.ready:
        return is_recent(pod, now)
    if container.running_since is None:
        return True
    # Running again: after one crash the new start is the news, after several the crash is, until it serves.
    runtime = answer(pod)
    if runtime is None:
        return True
    return container.restarts > 1 and runtime.phase not in {"Ready", "Draining"}


def _ending(pod: PodView) -> _Ending:
    container = pod.container
    told = _told(container.terminated_message)
    if container.terminated_reason == "OOMKilled":
        # Also when only the engine process was killed and the HTTP process wrote the message.
        return _Ending(Reason.OUT_OF_MEMORY, "It was killed for using more memory than its limit (OOMKilled).")
    if told is not None:
        return _Ending(FROM_CAUSE.get(told.cause, Reason.ENGINE_FAILED), told.message or told.cause)
    return _by_probe(pod) or _by_words(container)


def _by_probe(pod: PodView) -> _Ending | None:
    """The kubelet's kill leaves no message: the probe's failures just before it tell."""
    container = pod.container
    if container.exit_code not in _KILLED_BY_KUBELET or container.finished_at is None:
        return None
    since = container.finished_at - _PROBE_SECONDS
    failures = [event for event in pod.events if event.reason == "Unhealthy" and event.at >= since]
    if any(event.message.startswith("Liveness probe failed") for event in failures):
        return _Ending(Reason.ENGINE_STALLED, "It was killed because its liveness probe failed.")
    if any(event.message.startswith("Startup probe failed") for event in failures):
        return _Ending(Reason.STARTUP_DEADLINE_EXCEEDED, "It was killed because it was not ready in time.")
    return None


def _by_words(container: ContainerView) -> _Ending:
    words = container.terminated_message.strip()[-_LAST_WORDS:]
    if "No space left on device" in words:
        return _Ending(Reason.DISK_FULL, words)
    if container.terminated_reason in {"StartError", "ContainerCannotRun"}:
        return _Ending(Reason.CONTAINER_REFUSED, words or "Its program could not be started.")
    ended = f"It ended with {exit_text(container.exit_code)}."
    return _Ending(Reason.ENGINE_FAILED, f"{ended} Last words: {words}" if words else ended)


def exit_text(code: int | None) -> str:
    """`exit code 139 (SIGSEGV)`."""
    if code is None:
        return "an unknown exit code"
    try:
        name = signal.Signals(code - 128).name
    except ValueError:
        return f"exit code {code}"
    return f"exit code {code} ({name})"


def _told(message: str) -> _Termination | None:
    """The runtime's JSON; it is the last line when something else wrote before it."""
    for line in reversed(re.split(r"[\r\n]+", message.strip())):
        try:
            return msgspec.json.decode(line, type=_Termination)
        except msgspec.DecodeError:
            continue
    return None
