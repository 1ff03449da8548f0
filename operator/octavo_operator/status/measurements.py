"""What pods measured: start-up timings, capacity, bytes downloaded. One pod speaks for all, always the same one."""

from collections.abc import Iterable, Mapping
from typing import Any

from octavo_operator.observed import PodView
from octavo_operator.status.situation import Situation, serves
from octavo_operator.status.startup import Progress, answer, progress_of

_CAPACITY = (
    ("kv_blocks", "kvBlocks"),
    ("block_size", "blockSize"),
    ("max_model_len", "maxModelLen"),
    ("max_tokens_in_cache", "maxTokensInCache"),
    ("max_concurrency_at_max_len", "maxConcurrencyAtMaxLen"),
    ("tokens_per_second", "tokensPerSecond"),
)
_TIMINGS = (
    ("download_seconds", "downloadSeconds"),
    ("load_seconds", "loadSeconds"),
    ("compile_seconds", "compileSeconds"),
    ("warmup_seconds", "warmupSeconds"),
)


def measuring_pod(pods: Iterable[PodView]) -> PodView | None:
    """The serving pod that has been ready for the longest time, if its runtime has answered."""
    told = [pod for pod in pods if serves(pod) and answer(pod) is not None]
    return min(told, key=lambda pod: (pod.ready_at or pod.created_at, pod.name), default=None)


def capacity(situation: Situation) -> dict[str, Any]:
    """What one replica can hold and do, as its runtime found out after the warm-up."""
    measured = _told(situation).get("capacity") or {}
    return {key: _rounded(measured[name]) for name, key in _CAPACITY if measured.get(name) is not None}


def effective(situation: Situation) -> Mapping[str, Any]:
    """What the revision runs with; a context that was left open is what a pod of it found, told as `capacity` is."""
    found = capacity(situation).get("maxModelLen")
    left_open = situation.effective.get("maxModelLen") == "auto" and situation.target == situation.wanted
    return {**situation.effective, "maxModelLen": found} if left_open and found is not None else situation.effective


def timings(situation: Situation) -> dict[str, Any]:
    """How long each step of a start took."""
    pod = measuring_pod(situation.target_pods())
    if pod is None:
        return {}
    told = _told(situation).get("timings") or {}
    steps = {key: _rounded(told[name]) for name, key in _TIMINGS if told.get(name) is not None}
    return {**_steps_before_the_runtime(pod), **steps}


def download(situation: Situation) -> dict[str, Any]:
    """Bytes of the downloader, else of the pod that is furthest behind. Empty when nothing is being downloaded."""
    job_pods = situation.download.pods if situation.download is not None and not situation.download.complete else ()
    progress = min(_downloads(job_pods or situation.target_pods()), key=lambda each: each.percent, default=None)
    if progress is None:
        return {}
    return {"bytesDone": progress.total * progress.percent // 100, "bytesTotal": progress.total}


def _downloads(pods: Iterable[PodView]) -> list[Progress]:
    told = [runtime for runtime in map(answer, pods) if runtime is not None and runtime.phase == "Downloading"]
    return [progress for progress in map(progress_of, told) if progress is not None]


def _told(situation: Situation) -> Mapping[str, Any]:
    pod = measuring_pod(situation.target_pods())
    return pod.runtime.status if pod is not None and pod.runtime is not None else {}


def _steps_before_the_runtime(pod: PodView) -> dict[str, Any]:
    """From the pod's own times; a restarted container's start says nothing about the image."""
    steps: dict[str, Any] = {}
    if pod.scheduled_at is None:
        return steps
    steps["scheduleSeconds"] = _rounded(max(0.0, pod.scheduled_at - pod.created_at))
    if pod.container.restarts == 0 and pod.container.running_since is not None:
        steps["imagePullSeconds"] = _rounded(max(0.0, pod.container.running_since - pod.scheduled_at))
    return steps


def _rounded(number: Any) -> Any:
    """One decimal; whole numbers whole, as the API server gives them back."""
    if not isinstance(number, float):
        return number
    tenths = round(number, 1)
    return int(tenths) if tenths.is_integer() else tenths
