"""Pods and revisions as they are seen, made short."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.observed import ContainerView, PodView, RevisionView, RuntimeView

NOW = 10_000.0


def _pod(name: str = "p", **fields: Any) -> PodView:
    """A pod that serves, unless told otherwise. `load`: requests in flight; None: the runtime was not asked."""
    load = fields.pop("load", 0)
    phase = fields.pop("runtime_phase", "Ready")
    at = fields.pop("asked_at", NOW)
    running_since = fields.pop("running_since", NOW - 500)
    defaults: dict[str, Any] = {
        "uid": name,
        "revision": "a",
        "created_at": NOW - 1000,
        "phase": "Running",
        "ready": True,
        "routed": True,
        "drain_started_at": None,
        "terminating": False,
        "node": "n1",
        "container": ContainerView(running_since=running_since),
        "runtime": None if load is None else RuntimeView(at=at, phase=phase, in_flight=load),
    }
    return PodView(name=name, **(defaults | fields))


def _starting(name: str = "s", **fields: Any) -> PodView:
    """A pod that loads its weights."""
    return _pod(name, ready=False, runtime_phase="Loading", **fields)


def _pending(name: str = "w", **fields: Any) -> PodView:
    """A pod that no node takes."""
    waiting = {"node": "", "phase": "Pending", "ready": False, "scheduled_reason": "Unschedulable"}
    return _pod(name, load=None, running_since=None, **(waiting | fields))


def _draining(name: str = "d", since: float = NOW - 30, **fields: Any) -> PodView:
    """A pod with the mark, out of readiness."""
    marked = {"ready": False, "routed": False, "drain_started_at": since, "runtime_phase": "Draining"}
    return _pod(name, **(marked | fields))


def _revision(hash_: str, replicas: int | None, *pods: PodView, **fields: Any) -> RevisionView:
    return RevisionView(hash=hash_, number=fields.pop("number", 1), data={}, replicas=replicas, pods=pods, **fields)


@pytest.fixture
def now() -> float:
    return NOW


@pytest.fixture
def pod() -> Callable[..., PodView]:
    return _pod


@pytest.fixture
def starting() -> Callable[..., PodView]:
    return _starting


@pytest.fixture
def pending() -> Callable[..., PodView]:
    return _pending


@pytest.fixture
def draining() -> Callable[..., PodView]:
    return _draining


@pytest.fixture
def revision() -> Callable[..., RevisionView]:
    return _revision
