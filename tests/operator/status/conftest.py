"""Views of a small world at one moment, for the tests of `status`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from octavo_operator.api import LLMDeployment, parse
from octavo_operator.observed import (
    ClusterView,
    ContainerView,
    EventView,
    Observed,
    PodView,
    RevisionView,
    RuntimeView,
)
from octavo_operator.status.situation import RolloutFacts, Situation

NOW = 1_800_000_000.0
NEW, OLD = "bbbbbbbbbb", "aaaaaaaaaa"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Build:
    """Everything starts well; what a test names is different."""

    now, new, old, commit = NOW, NEW, OLD, COMMIT

    @staticmethod
    def deployment(status: Mapping[str, Any] | None = None, generation: int = 3, **spec: Any) -> LLMDeployment:
        """Named smollm, in namespace team."""
        metadata = {"namespace": "team", "name": "smollm", "uid": "u", "generation": generation}
        model = {"model": {"uri": "hf://org/smollm"}}
        return parse({"metadata": metadata, "spec": {**model, **spec}, "status": dict(status or {})})

    @staticmethod
    def container(**changes: Any) -> ContainerView:
        """Running for five minutes, never ended."""
        return replace(ContainerView(running_since=NOW - 300), **changes)

    @staticmethod
    def pod(name: str = "smollm-1", revision: str = NEW, **changes: Any) -> PodView:
        """Ready and routed."""
        base = PodView(
            name=name,
            uid=f"uid-{name}",
            revision=revision,
            created_at=NOW - 310,
            phase="Running",
            ready=True,
            routed=True,
            drain_started_at=None,
            terminating=False,
            node="octavo-1",
            scheduled_at=NOW - 308,
            ready_at=NOW - 200,
            container=Build.container(),
            runtime=Build.runtime(),
        )
        return replace(base, **changes)

    @staticmethod
    def starting(name: str = "smollm-1", revision: str = NEW, **changes: Any) -> PodView:
        """On its node, its container not made yet."""
        fresh = {"phase": "Pending", "ready": False, "ready_at": None, "runtime": None}
        return Build.pod(name, revision, **{**fresh, "container": ContainerView("ContainerCreating"), **changes})

    @staticmethod
    def crashed(message: str = "", *, loops: bool = True, **changes: Any) -> PodView:
        """Ended ten seconds ago and waits to be restarted."""
        container = ContainerView(
            waiting_reason="CrashLoopBackOff" if loops else "",
            terminated_reason="Error",
            terminated_message=message,
            exit_code=1,
            finished_at=NOW - 10,
            restarts=3 if loops else 0,
        )
        own = {name: changes.pop(name) for name in tuple(changes) if hasattr(container, name)}
        return Build.starting(**{"phase": "Running", "container": replace(container, **own), **changes})

    @staticmethod
    def runtime(phase: str = "Ready", **status: Any) -> RuntimeView:
        """Answered a second ago."""
        return RuntimeView(at=NOW - 1, phase=phase, status=status)

    @staticmethod
    def event(reason: str, message: str, age: float = 5.0) -> EventView:
        return EventView(reason, message, NOW - age)

    @staticmethod
    def revision(revision_hash: str = NEW, *pods: PodView, number: int = 2, **changes: Any) -> RevisionView:
        """Rolled out in full."""
        template = {"spec": {"containers": [{"name": "octavo", "image": "octavo-runtime:1"}]}}
        data = {"template": template, "model": {"resolvedRevision": COMMIT}}
        base = RevisionView(revision_hash, number, data, len(pods), pods, started_at=NOW - 320)
        return replace(base, **changes)

    @staticmethod
    def situation(
        *revisions: RevisionView,
        deployment: LLMDeployment | None = None,
        seen: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> Situation:
        """One ready replica of the newest revision, unless revisions are given. `seen`: changes of Observed."""
        found = revisions or (Build.revision(NEW, Build.pod()),)
        given = {"cluster": ClusterView(), **(seen or {})}
        observed = Observed(now=NOW, deployment=deployment or Build.deployment(), revisions=found, **given)
        base = Situation(
            observed=observed,
            desired=1,
            wanted=NEW,
            target=NEW,
            stable=NEW,
            model={"resolvedRevision": COMMIT, "bytes": 270_000_000, "architecture": "LlamaForCausalLM"},
            memory_plan={"weights": 270_000_000, "kvCache": 4_000_000_000, "source": "Estimated"},
            effective={"image": "octavo-runtime:1", "engineArgs": ["--port", "8000"]},
            url="http://smollm.team.svc",
            selector="octavo.dev/deployment=smollm",
            rollout=RolloutFacts(strategy="Surge", reason="One more pod fits.", started_at=NOW - 320),
        )
        return replace(base, **changes)


@pytest.fixture(scope="session")
def build() -> type[Build]:
    return Build
