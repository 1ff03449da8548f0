"""Argo CD's health script, run as Argo CD runs it, on what the cluster shows; and its history while something happens."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lupa  # type: ignore[import-untyped]
from e2e.kubernetes import POLL_S, Object
from e2e.workspace import Workspace

SCRIPT = Path(__file__).parents[1] / "integrations" / "argocd" / "health.lua"


@dataclass(frozen=True, slots=True)
class Sight:
    """What Argo CD said about one state of the resource."""

    health: str
    message: str
    resource: Object

    def keep(self, file: Path) -> None:
        """For the unit test of the script; without what differs from run to run and says nothing."""
        metadata: Object = {name: self.resource["metadata"][name] for name in ("name", "generation")}
        kept: Object = {
            key: self.resource[key] for key in ("apiVersion", "kind", "spec", "status") if key in self.resource
        }
        recorded = {"health": self.health, "resource": {**kept, "metadata": metadata}}
        file.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")


@dataclass(slots=True)
class History:
    """Each different thing that was said, oldest first."""

    sights: list[Sight] = field(default_factory=list)

    @property
    def healths(self) -> list[str]:
        """Without repetitions."""
        said = [sight.health for sight in self.sights]
        return [each for index, each in enumerate(said) if index == 0 or each != said[index - 1]]

    def last(self, health: str) -> Sight:
        return next(sight for sight in reversed(self.sights) if sight.health == health)

    def add(self, sight: Sight) -> None:
        if not self.sights or (self.sights[-1].health, self.sights[-1].message) != (sight.health, sight.message):
            self.sights.append(sight)

    def __str__(self) -> str:
        return "\n".join(f"{sight.health}: {sight.message}" for sight in self.sights)


def judge(resource: Object) -> Sight:
    """`obj` is a global of the script; what it returns has status and message."""
    lua: Any = lupa.LuaRuntime(unpack_returned_tuples=True)
    lua.globals().obj = lua.table_from(resource, recursive=True)
    answer = lua.execute(SCRIPT.read_text())
    return Sight(str(answer["status"]), str(answer["message"]), resource)


@asynccontextmanager
async def watched(workspace: Workspace, name: str) -> AsyncIterator[History]:
    """The history of the block, looked at several times a second."""
    history = History()
    task = asyncio.create_task(_keep_looking(workspace, name, history))
    try:
        yield history
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await _look(workspace, name, history)  # what the block waited for may be newer


async def _keep_looking(workspace: Workspace, name: str, history: History) -> None:
    while True:
        await _look(workspace, name, history)
        await asyncio.sleep(POLL_S)


async def _look(workspace: Workspace, name: str, history: History) -> None:
    resource = await workspace.get("LLMDeployment", name)
    if resource is not None:
        history.add(judge(resource))
