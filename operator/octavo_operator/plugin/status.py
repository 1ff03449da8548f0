"""`kubectl octavo status [NAME]`: one row per LLMDeployment; `--watch` keeps the table live."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from octavo_operator.kube_client import Raw
from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.errors import PluginError

WATCH_SECONDS = 2.0
_COLOURS = {"Ready": "green", "Failed": "red", "Degraded": "red", "Suspended": "dim"}
_CONDITION_ORDER = ("Ready", "Reconciling", "Stalled", "Available", "Degraded")


async def status(cluster: Cluster, name: str | None, *, everywhere: bool, watch: bool, console: Console) -> int:
    """Print once, or until interrupted."""
    if not watch:
        console.print(await _screen(cluster, name, everywhere))
        return 0
    with Live(await _screen(cluster, name, everywhere), console=console, auto_refresh=False) as live:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            live.update(await _screen(cluster, name, everywhere), refresh=True)


async def _screen(cluster: Cluster, name: str | None, everywhere: bool) -> RenderableType:
    if name is not None:
        raw = await cluster.deployment(name)
        return Group(table([raw], everywhere=False), Text(), details(raw))
    found = await cluster.deployments(everywhere)
    if not found:
        place = "The cluster" if everywhere else f"Namespace {cluster.namespace}"
        raise PluginError(f"{place} has no LLMDeployment; `kubectl apply -f` one, or look elsewhere with -n or -A.")
    return table(found, everywhere)


def table(raws: Sequence[Raw], everywhere: bool) -> Table:
    """What `kubectl get llmd` shows, with the message of what is not well."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    if everywhere:
        rows.add_column("NAMESPACE", no_wrap=True)
    for title in ("NAME", "PHASE", "READY", "REASON"):
        rows.add_column(title, no_wrap=True)
    rows.add_column("MESSAGE", overflow="fold", ratio=1)
    for raw in raws:
        rows.add_row(*_row(raw, everywhere))
    return rows


def _row(raw: Mapping[str, Any], everywhere: bool) -> list[Text]:
    metadata, told = raw["metadata"], raw.get("status") or {}
    phase = str(told.get("phase", "Pending"))
    ready = _condition(told, "Ready")
    row = [
        Text(metadata["name"]),
        Text(phase, _COLOURS.get(phase, "yellow")),
        Text(str(told.get("ready", ""))),
        Text(str(told.get("reason", ""))),
        Text("" if ready.get("status") == "True" else str(ready.get("message", ""))),
    ]
    return [Text(metadata["namespace"]), *row] if everywhere else row


def details(raw: Mapping[str, Any]) -> RenderableType:
    """One resource: what it runs, and its main conditions."""
    told = raw.get("status") or {}
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for title, value in _facts(raw, told):
        if value:
            facts.add_row(title, value)
    return facts


def _facts(raw: Mapping[str, Any], told: Mapping[str, Any]) -> list[tuple[str, str]]:
    model, rollout = told.get("model", {}), told.get("rollout", {})
    held = {kind: _condition(told, kind) for kind in _CONDITION_ORDER}
    conditions = ", ".join(f"{kind}={held[kind]['status']}" for kind in _CONDITION_ORDER if held[kind])
    failure = told.get("lastFailure", {})
    return [
        ("Model", str(raw["spec"]["model"]["uri"])),
        ("Revision", str(model.get("resolvedRevision", ""))),
        ("URL", str(told.get("url", ""))),
        ("Rollout", " ".join(str(rollout.get(key, "")) for key in ("strategy", "reason")).strip()),
        ("Conditions", conditions),
        ("Last failure", " ".join(str(failure.get(key, "")) for key in ("at", "reason", "message")).strip()),
    ]


def _condition(told: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((each for each in told.get("conditions") or () if each.get("type") == kind), {})
