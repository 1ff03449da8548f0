"""Claims that cannot work are found before pods are made, and a downloader's troubles are told as its own."""

import json
from typing import Any

import pytest

from octavo_operator.observed import ClaimView, ClusterView, EventView, JobView
from octavo_operator.reasons import Reason
from octavo_operator.status.storage import diagnose_claim, diagnose_job

NO_CLASS = EventView("ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found', 1.0)
CLUSTER = ClusterView(storage_classes=frozenset({"standard"}), default_storage_class="standard")


def claim(phase: str = "Bound", modes: tuple[str, ...] = ("ReadWriteMany",), **changes: Any) -> ClaimView:
    return ClaimView("weights", phase, modes, changes.get("storage_class", ""), changes.get("events", ()))


def job(*pods: Any, **changes: Any) -> JobView:
    base = {"active": 1, "succeeded": 0, "failed": 0, "complete": False, "gave_up": False}
    return JobView(name="smollm-dl-1", **{**base, **changes}, pods=pods)


def test_a_missing_storage_class_is_named_with_those_that_exist(build: Any) -> None:
    finding = diagnose_claim(claim("Pending", storage_class="fast", events=(NO_CLASS,)), CLUSTER, build.deployment(), 1)
    assert finding is not None
    assert finding.reason is Reason.STORAGE_CLASS_MISSING
    assert "fast" in finding.message
    assert "standard" in finding.message


def test_no_class_and_no_default_is_a_missing_class_too(build: Any) -> None:
    event = EventView(
        "FailedBinding", "no persistent volumes available for this claim and no storage class is set", 1.0
    )
    finding = diagnose_claim(claim("Pending", events=(event,)), ClusterView(), build.deployment(), 1)
    assert finding is not None
    assert finding.reason is Reason.STORAGE_CLASS_MISSING


def test_a_class_name_that_only_binds_volumes_needs_no_class(build: Any) -> None:
    assert diagnose_claim(claim("Bound", storage_class="manual"), CLUSTER, build.deployment(), 1) is None
    assert diagnose_claim(claim("Pending", storage_class="manual"), CLUSTER, build.deployment(), 1) is None


def test_one_node_claim_with_two_replicas_is_refused_before_pods_exist(build: Any) -> None:
    finding = diagnose_claim(claim(modes=("ReadWriteOnce",)), CLUSTER, build.deployment(), 2)
    assert finding is not None
    assert finding.reason is Reason.VOLUME_MULTI_ATTACH
    assert finding.blocks


def test_one_replica_may_use_a_one_node_claim(build: Any) -> None:
    assert diagnose_claim(claim(modes=("ReadWriteOnce",)), CLUSTER, build.deployment(), 1) is None


def test_a_claim_of_several_modes_may_be_shared(build: Any) -> None:
    assert diagnose_claim(claim(modes=("ReadWriteOnce", "ReadOnlyMany")), CLUSTER, build.deployment(), 3) is None


def test_a_claim_that_waits_for_its_first_pod_is_no_problem(build: Any) -> None:
    waits = EventView("WaitForFirstConsumer", "waiting for first consumer to be created before binding", 1.0)
    assert diagnose_claim(claim("Pending", events=(waits,)), CLUSTER, build.deployment(), 1) is None


def test_a_provisioner_that_fails_is_quoted(build: Any) -> None:
    event = EventView("ProvisioningFailed", "quota of the storage account exceeded", 1.0)
    finding = diagnose_claim(claim("Pending", events=(event,)), CLUSTER, build.deployment(), 1)
    assert finding is not None
    assert finding.reason is Reason.WAITING_FOR_VOLUME
    assert "quota of the storage account" in finding.message


def test_a_lost_claim_needs_a_person(build: Any) -> None:
    finding = diagnose_claim(claim("Lost"), CLUSTER, build.deployment(), 1)
    assert finding is not None
    assert finding.blocks


OWNERS = {
    "ours": {"cache": {"mode": "SharedPVC", "sharedPVC": {"size": "1Gi"}}},
    "named by the cache": {"cache": {"mode": "SharedPVC", "sharedPVC": {"claimName": "weights"}}},
    "the model's": {"model": {"uri": "pvc://weights"}},
}
NO_VOLUME = EventView("FailedBinding", "no persistent volumes available and no storage class is set", 1.0)
TROUBLES = {
    "lost": claim("Lost"),
    "no class": claim("Pending", events=(NO_VOLUME,)),
    "wrong class": claim("Pending", storage_class="fast", events=(NO_CLASS,)),
    "one node": claim(modes=("ReadWriteOnce",)),
}


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_advice_is_about_the_claim_that_is_in_trouble_and_about_fields_that_the_spec_has(
    build: Any, owner: str, trouble: str
) -> None:
    spec = OWNERS[owner]
    finding = diagnose_claim(TROUBLES[trouble], ClusterView(), build.deployment(**spec), 2)
    assert finding is not None
    assert finding.advice
    assert ("cache." in finding.remedy) <= ("cache" in spec)
    assert ("downloader" in finding.remedy) <= ("cache" in spec)
    assert ("model.uri" in finding.remedy) <= (owner == "the model's")
    assert ("cache.sharedPVC.storageClassName" in finding.remedy) == (owner == "ours" and "class" in trouble)
    assert ("PersistentVolumeClaim weights" in finding.remedy) >= (owner != "ours" and trouble != "one node")


def test_a_class_that_a_claim_names_cannot_be_changed_and_one_that_it_lacks_can_be_set(build: Any) -> None:
    def advice(trouble: str, owner: str) -> str:
        finding = diagnose_claim(TROUBLES[trouble], ClusterView(), build.deployment(**OWNERS[owner]), 1)
        return finding.advice if finding else ""

    assert advice("no class", "the model's").startswith("Set storageClassName of PersistentVolumeClaim weights to one")
    assert "make a PersistentVolume for it" in advice("no class", "the model's")
    assert "anew" in advice("wrong class", "the model's")
    assert "delete PersistentVolumeClaim weights" in advice("wrong class", "ours")
    assert "delete" not in advice("no class", "ours")


def test_the_autoscaler_is_named_where_it_is_what_wants_several_replicas(build: Any) -> None:
    auto = {**OWNERS["the model's"], "scaling": {"mode": "Auto", "auto": {"maxReplicas": 3}}}
    for spec, field in ((auto, "scaling.auto.maxReplicas to 1"), (OWNERS["the model's"], "set replicas to 1")):
        finding = diagnose_claim(TROUBLES["one node"], ClusterView(), build.deployment(**spec), 3)
        assert finding is not None
        assert field in finding.advice


def test_no_claim_is_no_finding(build: Any) -> None:
    assert diagnose_claim(None, CLUSTER, build.deployment(), 5) is None


def test_downloader_tells_its_progress(build: Any) -> None:
    runtime = build.runtime("Downloading", progress={"done_bytes": 10, "total_bytes": 100})
    finding = diagnose_job(job(build.pod(revision="", ready=False, runtime=runtime)), build.now)
    assert finding is not None
    assert (finding.reason, finding.message) == (Reason.DOWNLOADING, "Downloading the weights: 10 % of 100 bytes.")


def test_downloaders_last_words_become_the_finding(build: Any) -> None:
    words = json.dumps({"cause": "DiskFull", "message": "The claim has 1 GiB, the model needs 2."})
    finding = diagnose_job(job(build.crashed(words)), build.now)
    assert finding is not None
    assert (finding.reason, finding.container) == (Reason.DISK_FULL, "download")


def test_a_downloader_that_gave_up_blocks_whatever_it_died_of(build: Any) -> None:
    words = json.dumps({"cause": "HubUnreachable", "message": "No answer."})
    with_cause = diagnose_job(job(build.crashed(words), active=0, failed=7, gave_up=True), build.now)
    without_pods = diagnose_job(job(active=0, failed=7, gave_up=True), build.now)
    assert with_cause is not None
    assert without_pods is not None
    assert (with_cause.reason, with_cause.blocks) == (Reason.HUB_UNREACHABLE, True)
    assert (without_pods.reason, without_pods.blocks) == (Reason.DOWNLOAD_FAILED, True)


def test_a_job_without_pods_yet_is_downloading(build: Any) -> None:
    finding = diagnose_job(job(), build.now)
    assert finding is not None
    assert finding.reason is Reason.DOWNLOADING


def test_a_complete_job_has_no_finding(build: Any) -> None:
    assert diagnose_job(job(complete=True), build.now) is None
