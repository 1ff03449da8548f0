"""Reads a pod's `/status`, and tells whether anything that somebody waits for has changed. Pure."""

from dataclasses import replace
from typing import Any

import msgspec

from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.observed import RuntimeView

KV_STEP = 0.02  # of cache use; less is noise


def read_status(body: bytes, at: float, kv_cache_usage: float) -> RuntimeView:
    """Raises ValueError. Fields that are missing or of another type count as nothing."""
    try:
        status = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    phase = status.get("phase")
    return RuntimeView(
        at=at,
        phase=phase if isinstance(phase, str) else "",
        in_flight=_count(status.get("in_flight")),
        waiting=_count(status.get("waiting")),
        kv_cache_usage=kv_cache_usage,
        status=status,
    )


def with_load(view: RuntimeView, sample: Sample) -> RuntimeView:
    """The view with a newer load. Its time stays that of `/status`, which alone says that a drain is over."""
    waiting = view.waiting if sample.waiting is None else int(sample.waiting)
    in_flight = view.in_flight if sample.running is None else int(sample.running) + waiting
    usage = view.kv_cache_usage if sample.kv_usage is None else sample.kv_usage
    return replace(view, in_flight=in_flight, waiting=waiting, kv_cache_usage=usage)


def is_news(before: RuntimeView | None, after: RuntimeView, draining: bool) -> bool:
    """A change that decides something: the phase, the drain, or that a draining pod has nothing left."""
    if before is None or before.phase != after.phase:
        return True
    if before.status.get("draining") != after.status.get("draining"):
        return True
    return draining and _load(before) != _load(after) == 0


def is_progress(before: RuntimeView | None, after: RuntimeView, draining: bool) -> bool:
    """A change that is only told: bytes loaded, requests left."""
    if before is None:
        return False
    if before.status.get("progress") != after.status.get("progress"):
        return True
    return draining and _load(before) != _load(after)


def is_new_load(before: Sample | None, after: Sample) -> bool:
    """A change that the number of replicas may depend on."""
    if before is None or before.waiting != after.waiting:
        return True
    if before.kv_usage is None or after.kv_usage is None:
        return before.kv_usage is not after.kv_usage
    return abs(before.kv_usage - after.kv_usage) >= KV_STEP or bool(before.running) != bool(after.running)


def _load(view: RuntimeView) -> int:
    return view.in_flight + view.waiting


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) else 0
