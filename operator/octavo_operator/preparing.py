"""`prepare`: from a resolved model to a revision that may be rolled out, or the finding why not.

Pure. Given what was observed and the model as far as it is known; plans memory before a GPU is asked for, renders the pod
template of a new revision, and says whether its weights are where pods will read them. A stored revision is used as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from octavo_operator.api import LLMDeployment
from octavo_operator.desired.downloader_job import downloader_job, downloader_name
from octavo_operator.desired.echo import echo
from octavo_operator.desired.network_policy import egress_ports
from octavo_operator.desired.pod_template import pod_template
from octavo_operator.effective import Device, Effective, RenderDefaults, decide
from octavo_operator.model import devices, memory_plan
from octavo_operator.model.memory_status import to_status
from octavo_operator.model.problem import ModelProblem, Refusal
from octavo_operator.model.resolved import ResolvedModel, status_of
from octavo_operator.observed import JobView, Observed
from octavo_operator.reasons import Reason
from octavo_operator.revision import RevisionRecord, record_of, revision_data, revision_hash, upgrade_sentence
from octavo_operator.sizing import Sizing, size
from octavo_operator.spec_problem import SpecProblem
from octavo_operator.status.finding import Finding
from octavo_operator.status.severity import worst
from octavo_operator.status.storage import diagnose_claim, diagnose_job
from octavo_operator.weights import Weights, is_shared, shared_claim

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The revision of the spec, as far as it has come."""

    wanted: str  # its hash
    effective: Effective
    record: RevisionRecord | None = None  # None: the model is not resolved, or refused
    sizing: Sizing | None = None
    held: bool = True  # it may not have pods yet
    findings: tuple[Finding, ...] = ()
    model: Raw = field(default_factory=dict)
    memory_plan: Raw = field(default_factory=dict)
    echo: Raw = field(default_factory=dict)
    longest_context: int | None = None  # that the model was made for, tokens
    upgrade: str = ""
    cached_on: str = ""
    download: JobView | None = None
    downloader: Raw | None = None  # Job to apply


def prepare(observed: Observed, resolution: ResolvedModel | ModelProblem | None, defaults: RenderDefaults) -> Prepared:
    """`resolution` is asked for only where the revision is not stored yet. Raises SpecProblem."""
    deployment = observed.deployment
    wanted = revision_hash(deployment.spec)
    view = next((view for view in observed.revisions if view.hash == wanted and view.data), None)
    if view is not None:
        return _stored(observed, record_of(view), defaults)
    effective = decide(deployment, observed.cluster, defaults)  # what cannot be decided ends the pass: nothing is known
    if resolution is None:
        finding = Finding(Reason.RESOLVING_MODEL, f"{deployment.spec.model.uri} is being looked up.")
        return Prepared(wanted=wanted, effective=effective, findings=(finding,))
    if isinstance(resolution, ModelProblem):
        finding = Finding(resolution.reason, resolution.message)
        return Prepared(wanted=wanted, effective=effective, findings=(finding,))
    try:
        return _new(observed, wanted, effective, resolution, defaults)
    except SpecProblem as problem:  # found while rendering: like any refused model, and what serves goes on
        return Prepared(wanted=wanted, effective=effective, findings=(Finding(Reason.SPEC_INVALID, str(problem)),))


def _new(
    observed: Observed, wanted: str, effective: Effective, model: ResolvedModel, defaults: RenderDefaults
) -> Prepared:
    """Render the revision, unless the plan refuses it."""
    deployment = observed.deployment
    weights = weights_of(model, effective)
    sizing = size(deployment, effective, weights, defaults)
    status = status_of(model)
    planned = memory_plan.plan(model, plan_parameters(effective), device_of(observed, effective, sizing))
    if isinstance(planned, Refusal):
        finding = Finding(planned.reason, planned.message, advice=planned.advice)
        return Prepared(wanted=wanted, effective=effective, sizing=sizing, findings=(finding,), model=status)
    template = pod_template(deployment, effective, sizing, weights, defaults)
    plan_status = to_status(planned) if planned is not None else {}
    record = RevisionRecord(
        hash=wanted,
        number=1 + max((view.number for view in observed.revisions), default=0),
        data=revision_data(
            template,
            {**echo(deployment, effective, sizing, weights), "device": effective.device.value},
            {**status, "resolved": model.to_data()},
            plan_status,
            egress_ports(deployment, weights, defaults),
            defaults.operator_version,
        ),
        started_at=observed.now,
    )
    return _with_weights(observed, record, effective, sizing, weights, defaults)


def _stored(observed: Observed, record: RevisionRecord, defaults: RenderDefaults) -> Prepared:
    """The revision exists: its template and commit stand, whatever this operator would render today."""
    device = Device(record.data["effective"]["device"])
    effective = decide(observed.deployment, observed.cluster, defaults, device)
    weights = weights_of(ResolvedModel.from_data(record.data["model"]["resolved"]), effective)
    sizing = size(observed.deployment, effective, weights, defaults)
    return _with_weights(observed, record, effective, sizing, weights, defaults)


def _with_weights(
    observed: Observed,
    record: RevisionRecord,
    effective: Effective,
    sizing: Sizing,
    weights: Weights,
    defaults: RenderDefaults,
) -> Prepared:
    """Add whether its pods would find their weights."""
    deployment = observed.deployment
    model = {name: value for name, value in record.data["model"].items() if name != "resolved"}
    shape = ResolvedModel.from_data(record.data["model"]["resolved"]).shape
    download, downloader, findings = None, None, _storage_findings(observed, effective)
    cached_on = ""
    if is_shared(deployment):
        name = downloader_name(deployment, weights)
        download = next((job for job in observed.downloads if job.name == name), None)
        if not findings and not observed.missing_references:
            downloader = downloader_job(deployment, effective, weights, defaults)
        if download is not None and download.complete:
            cached_on = shared_claim(deployment)
    waits = is_shared(deployment) and not cached_on
    return Prepared(
        wanted=record.hash,
        effective=effective,
        record=record,
        sizing=sizing,
        held=(waits or bool(findings) or bool(observed.missing_references)) and record.succeeded_at is None,
        findings=findings if download is None else (*findings, *_job_findings(download, observed.now)),
        model=model,
        memory_plan=record.data.get("memoryPlan") or {},
        echo=dict(record.data["effective"]),
        longest_context=shape.max_positions if shape else None,
        upgrade=_upgrade(deployment, record, effective, sizing, weights, defaults),
        cached_on=cached_on,
        download=download,
        downloader=downloader,
    )


def _upgrade(
    deployment: LLMDeployment,
    record: RevisionRecord,
    effective: Effective,
    sizing: Sizing,
    weights: Weights,
    defaults: RenderDefaults,
) -> str:
    """What this operator would render differently; empty when nothing, or when it would refuse what is stored."""
    try:
        fresh = pod_template(deployment, effective, sizing, weights, defaults)
    except SpecProblem:
        return ""
    return upgrade_sentence(record.data, fresh, defaults.operator_version)


def _storage_findings(observed: Observed, effective: Effective) -> tuple[Finding, ...]:
    """What the claim forbids, before pods are made."""
    most = effective.auto.max_replicas if effective.auto else effective.replicas
    finding = diagnose_claim(observed.claim, observed.cluster, observed.deployment, most)
    return (finding,) if finding is not None and finding.blocks else ()


def _job_findings(job: JobView, now: float) -> tuple[Finding, ...]:
    finding = worst(found for found in (diagnose_job(job, now),) if found is not None)
    return (finding,) if finding is not None else ()


def weights_of(model: ResolvedModel, effective: Effective) -> Weights:
    """Sizes that the pod's shape follows from."""
    wanted = (
        memory_plan.cpu_memory_wanted(model, plan_parameters(effective)) if effective.device is Device.CPU else None
    )
    return Weights(commit=model.commit, size_bytes=model.bytes_total, cpu_memory_bytes=wanted)


def plan_parameters(effective: Effective) -> memory_plan.PlanParameters:
    """The engine's part of the plan."""
    engine = effective.engine
    return memory_plan.PlanParameters(
        tensor_parallel_size=engine.tensor_parallel_size,
        pipeline_parallel_size=engine.pipeline_parallel_size,
        gpu_memory_utilization=engine.gpu_memory_utilization,
        quantization=engine.quantization,
        kv_cache_dtype=engine.kv_cache_dtype,
        dtype=engine.dtype,
        max_model_len=engine.max_model_len,
        max_num_seqs=engine.max_num_seqs,
        block_size=engine.block_size,
    )


def device_of(observed: Observed, effective: Effective, sizing: Sizing) -> devices.Device:
    """What the plan is made for: the smallest GPU that the pod could land on, or the pod's own memory."""
    if effective.device is Device.CPU:
        return devices.cpu_device(sizing.memory_limit)
    wanted = observed.deployment.spec.pod.node_selector
    labels = [
        node.labels
        for node in observed.cluster.nodes
        if node.allocatable.get(effective.gpu_resource) and wanted.items() <= node.labels.items()
    ]
    return devices.choose_gpu(labels, observed.deployment.spec.resources.gpu_products)
