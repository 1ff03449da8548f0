"""Names fit their fields, and selectors choose what they should."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator import names
from octavo_operator.api import LLMDeployment, Model, Spec, parse
from octavo_operator.revision import revision_hash

DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
HASH = revision_hash(Spec(model=Model(uri="hf://acme/small")))
allowed = st.from_regex(r"\A[a-z]([-a-z0-9]{0,48}[a-z0-9])?\Z")


def deployment(**spec: object) -> LLMDeployment:
    metadata = {"name": "small", "namespace": "models", "uid": "u-1"}
    return parse({"metadata": metadata, "spec": {"model": {"uri": "hf://acme/small"}} | spec})


@given(name=allowed, claim=allowed, folder=st.text(max_size=300))
def test_every_name_is_a_dns_label(name: str, claim: str, folder: str) -> None:
    made = [
        names.service(name),
        names.pods_service(name),
        names.service_account(name),
        names.disruption_budget(name),
        names.network_policy(name),
        names.download_policy(name),
        names.pod_monitor(name),
        names.keys_secret(name),
        names.claim(name),
        names.revision(name, HASH),
        names.downloader(name, claim, folder),
    ]
    assert [n for n in made if len(n) > 63 or not DNS_LABEL.fullmatch(n)] == []


def test_downloads_of_different_folders_or_claims_have_different_jobs() -> None:
    made = {names.downloader("a", claim, folder) for claim in ("x", "y") for folder in ("m/1", "m/2")}
    assert len(made) == 4


def test_a_draining_pod_leaves_the_service_but_not_its_deployment() -> None:
    labels = names.server_labels("small", HASH) | {names.ROUTED: "false"}
    assert names.revision_selector("small", HASH).items() <= labels.items()
    assert not names.routed_selector("small").items() <= labels.items()


def test_a_downloader_is_no_server() -> None:
    labels = names.downloader_labels("small")
    assert names.downloader_selector("small").items() <= labels.items()
    assert not names.server_selector("small").items() <= labels.items()


def test_children_are_owned_without_holding_up_a_deletion() -> None:
    metadata = names.child_metadata(deployment(), "small-pods", {"extra": "label"})
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "octavo.dev/v1alpha1",
            "kind": "LLMDeployment",
            "name": "small",
            "uid": "u-1",
            "controller": True,
            "blockOwnerDeletion": False,
        }
    ]
    assert metadata["labels"] == {
        "app.kubernetes.io/name": "octavo-runtime",
        "app.kubernetes.io/instance": "small",
        "app.kubernetes.io/managed-by": "octavo-operator",
        "octavo.dev/deployment": "small",
        "extra": "label",
    }
    assert "finalizers" not in metadata


def test_selector_is_text_for_the_scale_subresource() -> None:
    text = names.selector_text(names.server_selector("small"))
    assert text == "octavo.dev/deployment=small,octavo.dev/component=server"


def test_url_needs_no_port() -> None:
    assert names.url(deployment(), "https") == "https://small.models.svc"


@pytest.mark.parametrize(
    ("key", "protected"),
    [
        ("octavo.dev/revision", True),
        ("octavo.dev/anything", True),
        ("app.kubernetes.io/managed-by", True),
        ("pod-template-hash", True),
        ("app.kubernetes.io/part-of", False),
        ("team", False),
    ],
)
def test_labels_that_selectors_rely_on_are_protected(key: str, protected: bool) -> None:
    assert names.is_protected_label(key) is protected


def test_annotations_that_decide_who_is_drained_are_protected() -> None:
    assert names.is_protected_annotation("controller.kubernetes.io/pod-deletion-cost")
    assert names.is_protected_annotation("octavo.dev/drain-requested")
    assert not names.is_protected_annotation("prometheus.io/scrape")
