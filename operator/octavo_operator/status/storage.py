"""Whether the claim can give pods their weights, and how the downloader that fills it gets on."""

from dataclasses import replace

from octavo_operator import names
from octavo_operator.api import LLMDeployment
from octavo_operator.observed import ClaimView, ClusterView, EventView, JobView
from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding
from octavo_operator.status.severity import worst
from octavo_operator.status.signals import diagnose
from octavo_operator.weights import claim_of_uri, is_shared

_SHARING_MODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})


def diagnose_claim(
    claim: ClaimView | None, cluster: ClusterView, deployment: LLMDeployment, replicas: int
) -> Finding | None:
    """What stands against pods that mount the claim; asked before they are made. `replicas`: the most that may be wanted."""
    if claim is None:
        return None
    return (
        _lost(claim, deployment)
        or _class_missing(claim, cluster, deployment)
        or _one_node_only(claim, deployment, replicas)
        or _provisioning_failed(claim)
    )


def diagnose_job(job: JobView, now: float) -> Finding | None:
    """What the downloader does or meets; None once the weights lie complete."""
    if job.complete:
        return None
    found = [diagnose(pod, now, names.DOWNLOADER_CONTAINER) for pod in job.pods]
    finding = worst(finding for finding in found if finding is not None)
    if job.gave_up:
        given_up = Finding(Reason.DOWNLOAD_FAILED, f"Job {job.name} gave up after {job.failed} failed pods.")
        return replace(finding, stalled=True) if finding is not None and finding.crashed else given_up
    return finding or Finding(Reason.DOWNLOADING, f"Job {job.name} fetches the weights.")


def _lost(claim: ClaimView, deployment: LLMDeployment) -> Finding | None:
    if claim.phase != "Lost":
        return None
    gone = f"PersistentVolumeClaim {claim.name}"
    if is_shared(deployment):  # a Job that is complete would leave the new claim empty
        gone += " and the model's downloader Job"
    anew = "Octavo makes them anew" if _is_ours(deployment) else "make the claim anew, on a volume that exists"
    advice = f"Delete {gone}; {anew}."
    return Finding(Reason.REFERENCE_MISSING, f"The volume of claim {claim.name} is lost.", advice=advice)


def _class_missing(claim: ClaimView, cluster: ClusterView, deployment: LLMDeployment) -> Finding | None:
    if claim.phase == "Bound":
        return None
    wanted = claim.storage_class
    if wanted and wanted not in cluster.storage_classes and _names_class(claim, wanted):
        known = ", ".join(sorted(cluster.storage_classes)) or "none"
        message = f"Claim {claim.name} asks for StorageClass {wanted}, which does not exist (there are: {known})."
        return Finding(Reason.STORAGE_CLASS_MISSING, message, advice=_other_class(claim, deployment))
    if not wanted and not cluster.default_storage_class and _event(claim, "FailedBinding") is not None:
        message = f"Claim {claim.name} names no StorageClass, and the cluster has no default one."
        return Finding(Reason.STORAGE_CLASS_MISSING, message, advice=_other_class(claim, deployment))
    return None


def _names_class(claim: ClaimView, wanted: str) -> bool:
    """A class by name only may bind existing volumes without any StorageClass object: then no provisioning is tried."""
    failed = _event(claim, "ProvisioningFailed")
    return failed is not None and wanted in failed.message


def _one_node_only(claim: ClaimView, deployment: LLMDeployment, replicas: int) -> Finding | None:
    if replicas < 2 or not claim.access_modes or _SHARING_MODES.intersection(claim.access_modes):
        return None
    modes = ", ".join(claim.access_modes)
    message = (
        f"Claim {claim.name} is {modes}: pods of one node only may mount it, "
        f"but {deployment.name} may have {replicas} replicas."
    )
    return Finding(Reason.VOLUME_MULTI_ATTACH, message, advice=_share_or_be_one(deployment))


def _provisioning_failed(claim: ClaimView) -> Finding | None:
    failed = _event(claim, "ProvisioningFailed") or _event(claim, "FailedBinding")
    if claim.phase != "Pending" or failed is None:
        return None
    return Finding(Reason.WAITING_FOR_VOLUME, f"Claim {claim.name}: {failed.message}", since=failed.at)


def _is_ours(deployment: LLMDeployment) -> bool:
    """Whether Octavo makes the claim: cache.sharedPVC says how. Else it is the user's, by model.uri or claimName."""
    shared = deployment.spec.cache.shared_pvc
    return is_shared(deployment) and not (shared and shared.claim_name)


def _other_class(claim: ClaimView, deployment: LLMDeployment) -> str:
    """A claim takes a class as long as it names none; one that it names can never be changed."""
    classes = "that `kubectl get storageclass` lists"
    if _is_ours(deployment):
        anew = f" and delete PersistentVolumeClaim {claim.name}, which is then made anew" if claim.storage_class else ""
        return f"Set cache.sharedPVC.storageClassName to one {classes}{anew}."
    if claim.storage_class:
        mended = f"Make PersistentVolumeClaim {claim.name} anew with a storageClassName {classes}"
    else:
        mended = f"Set storageClassName of PersistentVolumeClaim {claim.name} to one {classes}"
    return f"{mended}, or make a PersistentVolume for it."


def _share_or_be_one(deployment: LLMDeployment) -> str:
    field = "model.uri" if claim_of_uri(deployment.spec.model.uri) else "cache.sharedPVC.claimName"
    modes = "ReadWriteMany" if is_shared(deployment) else "ReadWriteMany or ReadOnlyMany"  # a cache is written
    most = "scaling.auto.maxReplicas" if deployment.spec.scaling.auto is not None else "replicas"
    return f"Name a claim with {modes} in {field}, or set {most} to 1 and rollout.strategy to InPlace."


def _event(claim: ClaimView, reason: str) -> EventView | None:
    return max((e for e in claim.events if e.reason == reason), key=lambda event: event.at, default=None)
