"""A namespace with one LLMDeployment as a person meets it, and a terminal of 80 columns."""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from rich.console import Console

from octavo_operator import names
from octavo_operator.kube_client import Raw
from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.layout import EDGELESS
from octavo_operator.testing import FakeKube, llm_deployment

REVISION = "1a2b3c4d5e"
CONDITIONS = {"Ready": "False", "Reconciling": "True", "Stalled": "False", "Available": "False"}


class Terminal:
    """80 columns unless said otherwise, no colours; `text` is what a person saw."""

    def __init__(self, width: int = 80) -> None:
        self.console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)

    @property
    def text(self) -> str:
        """Everything printed, without the spaces at the ends of lines."""
        printed = self.console.file.getvalue()  # type: ignore[attr-defined]
        return "\n".join(line.rstrip() for line in printed.splitlines())

    def reads_well(self) -> bool:
        """No line is wider than the terminal."""
        return all(len(line) <= 80 for line in self.text.splitlines())


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
def pipe() -> Terminal:
    """Standard output that is no screen."""
    return Terminal(EDGELESS)


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube([deployment()], as_operator=False)


@pytest.fixture
def cluster(kube: FakeKube) -> Cluster:
    return Cluster(kube, "team")


def deployment(name: str = "smollm", reason: str = "Loading", message: str = "It loads.", **status: Any) -> Raw:
    """With the status that the operator wrote."""
    conditions = [
        {"type": kind, "status": status.pop(kind, value), "reason": reason, "message": message}
        for kind, value in CONDITIONS.items()
    ]
    told = {
        "observedGeneration": 1,
        "phase": "Loading",
        "reason": reason,
        "ready": "0/1",
        "revisions": {"target": {"hash": REVISION}},
        "conditions": conditions,
    }
    return {**llm_deployment(name, "team"), "status": {**told, **status}}


def serving_pod(
    name: str = "smollm-1a2b3c4d5e-x7k2p", status: Mapping[str, Any] | None = None, revision: str = REVISION
) -> Raw:
    """On a node and running, unless the status says otherwise."""
    labels = names.server_labels("smollm", revision) if revision else names.downloader_labels("smollm")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "team", "name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {"nodeName": "octavo-1", "containers": [{"name": names.CONTAINER}]},
        "status": {"phase": "Running", **(status or {})},
    }


def running(ready: str = "True") -> dict[str, Any]:
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    return {
        "conditions": [{"type": "Ready", "status": ready}],
        "containerStatuses": [{"name": names.CONTAINER, "state": state}],
    }


def crashing(cause: str, message: str, restarts: int = 3) -> dict[str, Any]:
    ended = {
        "exitCode": 1,
        "reason": "Error",
        "finishedAt": "2026-01-01T00:00:00Z",
        "message": json.dumps({"cause": cause, "message": message}),
    }
    container = {
        "name": names.CONTAINER,
        "restartCount": restarts,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": ended},
    }
    return {"containerStatuses": [container]}


class Samples:
    """The objects above, for tests."""

    revision = REVISION
    deployment = staticmethod(deployment)
    serving_pod = staticmethod(serving_pod)
    running = staticmethod(running)
    crashing = staticmethod(crashing)


@pytest.fixture
def samples() -> type[Samples]:
    return Samples


@pytest.fixture
def put_all(kube: FakeKube) -> Callable[..., None]:
    def put(*raws: Raw) -> None:
        for raw in raws:
            kube.put(raw)

    return put
