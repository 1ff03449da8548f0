"""`kubectl octavo plan -f FILE`: what a manifest would need and whether it fits, before anything is applied.

Given manifests that were read already; resolves each model at its hub and plans memory with the operator's own code.
Touches no cluster: the GPU is that of resources.gpuProducts or --gpu.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import aiohttp
from rich.console import Console
from rich.text import Text

from octavo_operator.api import LLMDeployment, Model
from octavo_operator.effective import RenderDefaults
from octavo_operator.model.devices import MEMORY_LABEL, MIB, PRODUCT_LABEL
from octavo_operator.model.hub import Hub, HubSettings
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.resolution import resolve
from octavo_operator.model.resolved import ResolvedModel
from octavo_operator.observed import ClusterView, NodeView, Observed
from octavo_operator.plugin.layout import facts, hanging, say
from octavo_operator.plugin.manifest import Manifest
from octavo_operator.preparing import Prepared, prepare
from octavo_operator.quantity import format_bytes
from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding, ended
from octavo_operator.status.redaction import redact

DEFAULTS = RenderDefaults(image="octavo-runtime", operator_version="")  # any image will do: the plan is about memory
_MANY = 64  # GPUs of the imagined node, for the same reason
_WAY_OUT = "Check the way out of this machine (proxy, DNS)"
_REMEDIES = {  # where this machine asks and not the cluster
    Reason.HUB_UNREACHABLE: f"{_WAY_OUT}, or name a mirror by --endpoint.",
    Reason.MODEL_ACCESS_DENIED: "Give a token that may read the model by --token-file, or in HF_TOKEN.",
    Reason.MODEL_RATE_LIMITED: "Try again later, or with a token by --token-file.",
}


class Outcome(IntEnum):
    """Exit code of a plan. Of several manifests the worst counts, in this order: REFUSED, OPEN, FITS."""

    FITS = 0
    REFUSED = 1
    OPEN = 2  # it could not be told


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPU to plan for."""

    product: str
    memory_bytes: int | None = None  # None: from the table of known products


async def plan(
    manifests: Sequence[Manifest], hub: HubSettings, *, token: str | None, gpu: Gpu | None, console: Console
) -> Outcome:
    """Print one plan per manifest."""
    outcomes = []
    async with aiohttp.ClientSession(trust_env=True) as session:
        client = Hub(session, hub)
        for manifest in manifests:
            deployment = manifest.deployment
            if deployment is None:
                say(console, _refusals(manifest, console.width))
                outcomes.append(Outcome.REFUSED)
                continue
            prepared = await _prepared(deployment, token, gpu, client)
            outcome, verdict = _verdict(prepared, deployment.spec.model, console.width)
            say(console, [*_shown(deployment, prepared, console.width), *verdict, Text()])
            outcomes.append(outcome)
    return next(each for each in (Outcome.REFUSED, Outcome.OPEN, Outcome.FITS) if each in outcomes)


async def _prepared(deployment: LLMDeployment, token: str | None, gpu: Gpu | None, hub: Hub) -> Prepared:
    resolution: ResolvedModel | ModelProblem
    try:
        resolution = await resolve(deployment.spec.model, token, hub)
    except ModelProblem as problem:
        resolution = problem
    return prepare(imagined(deployment, gpu), resolution, DEFAULTS)


def imagined(deployment: LLMDeployment, gpu: Gpu | None) -> Observed:
    """A cluster with a node of that GPU, or of each that the manifest names, or with none at all."""
    resource = deployment.spec.resources.gpu_resource or DEFAULTS.gpu_resource
    gpus = [gpu] if gpu is not None else [Gpu(product) for product in deployment.spec.resources.gpu_products]
    nodes = tuple(
        NodeView(
            f"imagined-{each.product}",
            True,
            _labels(each) | dict(deployment.spec.pod.node_selector),
            (),
            {resource: _MANY},
            {},
        )
        for each in gpus
    )
    return Observed(now=0.0, deployment=deployment, cluster=ClusterView(nodes=nodes))


def _labels(gpu: Gpu) -> dict[str, str]:
    memory = {} if gpu.memory_bytes is None else {MEMORY_LABEL: str(gpu.memory_bytes // MIB)}
    return {PRODUCT_LABEL: gpu.product, **memory}


def _refusals(manifest: Manifest, width: int) -> Iterator[Text]:
    """What to write instead, an item each."""
    yield Text(manifest.name, "bold")
    yield Text("It would be refused:", "red bold")
    for refusal in manifest.refusals:
        yield from hanging(Text("- "), ended(refusal), width)
    yield Text()


def _shown(deployment: LLMDeployment, prepared: Prepared, width: int) -> list[Text]:
    """A small table."""
    rows = [(title, redact(value)) for title, value in _rows(deployment, prepared)]
    return [Text(deployment.name, "bold"), *facts(rows, width)]


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
        ("Device", _device(deployment, prepared)),
        ("Weights", _bytes(memory.get("weights"))),
        ("KV cache", _bytes(memory.get("kvCache"))),
        ("Activations", _bytes(memory.get("activations"))),
        ("Overhead", _bytes(memory.get("overhead"))),
        ("Headroom", _bytes(memory.get("headroom"))),
        ("Longest context", f"{memory['maxModelLenThatFits']:,} tokens" if "maxModelLenThatFits" in memory else ""),
        ("Pod memory", format_bytes(sizing.memory_bytes) if sizing else ""),
        ("Start-up budget", f"{sizing.startup_seconds} s" if sizing else ""),
    ]


def _device(deployment: LLMDeployment, prepared: Prepared) -> str:
    gpus = prepared.effective.gpus_per_pod
    if gpus:
        return f"{gpus} x {prepared.effective.gpu_resource} per replica"
    return "CPU" if deployment.spec.engine.device == "cpu" else "CPU (for a cluster with GPUs, name one by --gpu)"


def _verdict(prepared: Prepared, model: Model, width: int) -> tuple[Outcome, list[Text]]:
    if prepared.findings:
        return _found(prepared.findings[0], model, width)
    if not prepared.memory_plan:
        seen = "The weights can be seen by pods only: memory is checked when one starts."
        return Outcome.FITS, hanging(Text(), seen, width, style="yellow")
    if "maxModelLenThatFits" not in prepared.memory_plan:
        unknown = "The GPU's memory is not known: write --gpu-memory beside --gpu, or name a known product."
        return Outcome.OPEN, hanging(Text(), unknown, width, style="yellow")
    return Outcome.FITS, [Text("Fits.", "green")]


def _found(finding: Finding, model: Model, width: int) -> tuple[Outcome, list[Text]]:
    told = hanging(Text(f"{finding.reason.value}: ", "red bold"), redact(ended(finding.message)), width, below="")
    remedy = hanging(Text("What to do: ", "bold"), _remedy(finding, model), width, below="")
    return Outcome.REFUSED if finding.blocks else Outcome.OPEN, [*told, *remedy]


def _remedy(finding: Finding, model: Model) -> str:
    """A manifest that names its hub is not asked elsewhere, here or in the cluster."""
    if finding.reason is Reason.HUB_UNREACHABLE and model.endpoint and model.uri.startswith("hf://"):
        return f"{_WAY_OUT}, or change model.endpoint of the manifest: that is what was asked, and it wins over --endpoint."
    return _REMEDIES.get(finding.reason, finding.remedy)


def _bytes(number: Any) -> str:
    return format_bytes(number) if isinstance(number, int) else ""
