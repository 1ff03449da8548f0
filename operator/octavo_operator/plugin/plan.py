"""`kubectl octavo plan -f FILE`: what a manifest would need and whether it fits, before anything is applied.

Resolves the model at its hub and plans memory with the operator's own code; touches no cluster. The GPU is that of
resources.gpuProducts or --gpu.
"""

from dataclasses import dataclass
from typing import Any

import aiohttp
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from octavo_operator.api import LLMDeployment
from octavo_operator.effective import RenderDefaults
from octavo_operator.model.devices import MEMORY_LABEL, MIB, PRODUCT_LABEL
from octavo_operator.model.hub import Hub, HubSettings
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.resolution import resolve
from octavo_operator.model.resolved import ResolvedModel
from octavo_operator.observed import ClusterView, NodeView, Observed
from octavo_operator.plugin.errors import PluginError
from octavo_operator.preparing import Prepared, prepare
from octavo_operator.quantity import format_bytes
from octavo_operator.spec_problem import SpecProblem
from octavo_operator.status.redaction import redact

_IMAGE = "octavo-runtime"  # any will do: the plan is about memory
_MANY = 64  # GPUs of the imagined node, for the same reason


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPU to plan for."""

    product: str
    memory_bytes: int | None = None  # None: from the table of known products


async def plan(
    deployments: list[LLMDeployment],
    *,
    token: str | None,
    gpu: Gpu | None,
    console: Console,
    hub: HubSettings | None = None,
) -> int:
    """Print one plan per manifest. Exit code 1 when one of them would be refused."""
    fits = True
    async with aiohttp.ClientSession() as session:
        client = Hub(session, hub or HubSettings())
        for deployment in deployments:
            prepared = await _prepared(deployment, token, gpu, client)
            console.print(shown(deployment, prepared))
            fits = fits and not any(finding.blocks for finding in prepared.findings)
    return 0 if fits else 1


async def _prepared(deployment: LLMDeployment, token: str | None, gpu: Gpu | None, hub: Hub) -> Prepared:
    resolution: ResolvedModel | ModelProblem
    try:
        resolution = await resolve(deployment.spec.model, token, hub)
    except ModelProblem as problem:
        resolution = problem
    try:
        return prepare(imagined(deployment, gpu), resolution, RenderDefaults(image=_IMAGE, operator_version=""))
    except SpecProblem as problem:
        raise PluginError(f"{deployment.name}: {problem}.") from problem


def imagined(deployment: LLMDeployment, gpu: Gpu | None) -> Observed:
    """A cluster with one node of that GPU, or with none at all."""
    nodes: tuple[NodeView, ...] = ()
    products = deployment.spec.resources.gpu_products
    if gpu is not None or products:
        resource = deployment.spec.resources.gpu_resource or RenderDefaults("", "").gpu_resource
        labels = _labels(gpu or Gpu(products[0]))
        labels |= dict(deployment.spec.pod.node_selector)
        nodes = (NodeView("imagined", True, labels, (), {resource: _MANY}, {}),)
    return Observed(now=0.0, deployment=deployment, cluster=ClusterView(nodes=nodes))


def _labels(gpu: Gpu) -> dict[str, str]:
    memory = {} if gpu.memory_bytes is None else {MEMORY_LABEL: str(gpu.memory_bytes // MIB)}
    return {PRODUCT_LABEL: gpu.product, **memory}


def shown(deployment: LLMDeployment, prepared: Prepared) -> RenderableType:
    """A small table, and the refusal below it."""
    rows = Table(box=None, pad_edge=False, show_header=False)
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(overflow="fold")
    for title, value in _rows(deployment, prepared):
        if value:
            rows.add_row(title, redact(value))
    return Group(Text(deployment.name, "bold"), rows, *_verdict(prepared), Text())


def _rows(deployment: LLMDeployment, prepared: Prepared) -> list[tuple[str, str]]:
    model, memory = prepared.model, prepared.memory_plan
    parameters = model.get("parameters")
    sizing = prepared.sizing
    return [
        ("Model", deployment.spec.model.uri),
        ("Revision", str(model.get("resolvedRevision", ""))),
        ("Architecture", ", ".join(str(model[key]) for key in ("architecture", "quantization") if model.get(key))),
        ("Parameters", f"{parameters / 1e6:,.0f} M" if isinstance(parameters, int) else ""),
        ("Download", _bytes(model.get("bytes"))),
        ("Device", _device(prepared)),
        ("Weights", _bytes(memory.get("weights"))),
        ("KV cache", _bytes(memory.get("kvCache"))),
        ("Activations", _bytes(memory.get("activations"))),
        ("Overhead", _bytes(memory.get("overhead"))),
        ("Headroom", _bytes(memory.get("headroom"))),
        ("Longest context", f"{memory['maxModelLenThatFits']:,} tokens" if "maxModelLenThatFits" in memory else ""),
        ("Pod memory", format_bytes(sizing.memory_bytes) if sizing else ""),
        ("Start-up budget", f"{sizing.startup_seconds} s" if sizing else ""),
    ]


def _device(prepared: Prepared) -> str:
    gpus = prepared.effective.gpus_per_pod
    if not gpus:
        return "CPU"
    return f"{gpus} x {prepared.effective.gpu_resource} per replica"


def _verdict(prepared: Prepared) -> list[Text]:
    if prepared.findings:
        finding = prepared.findings[0]
        refused = Text.assemble((f"{finding.reason.value}: ", "red bold"), redact(finding.message))
        return [refused, Text.assemble(("What to do: ", "bold"), finding.remedy)]
    if not prepared.memory_plan:
        return [Text("The weights can be seen by pods only: memory is checked when one starts.", "yellow")]
    if "maxModelLenThatFits" not in prepared.memory_plan:
        return [Text("The GPU's memory is not known: name it by --gpu or resources.gpuProducts.", "yellow")]
    return [Text("Fits.", "green")]


def _bytes(number: Any) -> str:
    return format_bytes(number) if isinstance(number, int) else ""
