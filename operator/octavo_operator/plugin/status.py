"""`kubectl octavo status [NAME]`: one row per LLMDeployment; `--watch` keeps the table live."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from octavo_operator.conditions import condition
from octavo_operator.kube_client import Raw
from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.layout import aligned, facts, hanging, say
from octavo_operator.reasons import Reason

WATCH_SECONDS = 2.0
_COLOURS = {"Ready": "green", "Failed": "red", "Degraded": "red", "Suspended": "dim"}
_CONDITION_ORDER = ("Ready", "Reconciling", "Stalled", "Available", "Degraded")
_TELL_OF_DRAINS = (Reason.DRAINING, Reason.ROLLING_OUT)  # in their own message


async def status(cluster: Cluster, name: str | None, *, everywhere: bool, watch: bool, console: Console) -> int:
    """Print once, or until interrupted."""
    if not watch:
        say(console, await _screen(cluster, name, everywhere, console.width))
        return 0
    lines = await _screen(cluster, name, everywhere, console.width)
    with Live(Group(*lines), console=console, auto_refresh=False) as live:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            lines = await _screen(cluster, name, everywhere, console.width)
            live.update(Group(*lines), refresh=True)


async def _screen(cluster: Cluster, name: str | None, everywhere: bool, width: int) -> list[Text]:
    if name is not None:
        raw = await cluster.deployment(name)
        return [*table([raw], everywhere=False, width=width), Text(), *details(raw, width)]
    found = await cluster.deployments(everywhere)
    if not found:
        place = "The cluster" if everywhere else f"Namespace {cluster.namespace}"
        raise PluginError(f"{place} has no LLMDeployment; `kubectl apply -f` one, or look elsewhere with -n or -A.")
    return table(found, everywhere, width)


def table(raws: Sequence[Raw], everywhere: bool, width: int) -> list[Text]:
    """What `kubectl get llmd` shows, with the message of what is not well; below its row where the screen is narrow."""
    titles = [*(["NAMESPACE"] if everywhere else []), "NAME", "PHASE", "READY", "REASON", "MESSAGE"]
    rows = [[Text(title, "bold") for title in titles], *(_row(raw, everywhere) for raw in raws)]
    lines = aligned(rows)
    if all(line.cell_len <= width for line in lines):
        return lines
    header, *heads = aligned([row[:-1] for row in rows])
    told = zip(heads, (row[-1].plain for row in rows[1:]), strict=True)
    return [header, *(line for head, message in told for line in (head, *_below(message, width)))]


def _below(message: str, width: int) -> list[Text]:
    return hanging(Text("  "), message, width) if message else []


def _row(raw: Mapping[str, Any], everywhere: bool) -> list[Text]:
    metadata, told = raw["metadata"], raw.get("status") or {}
    phase = str(told.get("phase", "Pending"))
    row = [
        Text(metadata["name"]),
        Text(phase, _COLOURS.get(phase, "yellow")),
        Text(str(told.get("ready", ""))),
        Text(str(told.get("reason", ""))),
        Text(_message(told)),
    ]
    return [Text(metadata["namespace"]), *row] if everywhere else row


def _message(told: Mapping[str, Any]) -> str:
    """In one line: what is not well, and pods that go although all is."""
    ready, draining = condition(told, "Ready"), told.get("drainingReplicas", 0)
    words = [] if ready.get("status") == "True" else str(ready.get("message", "")).split()
    if draining and ready.get("reason") not in _TELL_OF_DRAINS:
        words.append(
            "1 pod more finishes its streams." if draining == 1 else f"{draining} pods more finish their streams."
        )
    return " ".join(words)


def details(raw: Mapping[str, Any], width: int) -> list[Text]:
    """One resource: what it runs, and its main conditions."""
    return facts(_facts(raw, raw.get("status") or {}), width)


def _facts(raw: Mapping[str, Any], told: Mapping[str, Any]) -> list[tuple[str, str]]:
    model, rollout = told.get("model", {}), told.get("rollout", {})
    held = {kind: condition(told, kind) for kind in _CONDITION_ORDER}
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
