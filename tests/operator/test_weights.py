"""Where a pod finds its weights."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.api import LLMDeployment, parse
from octavo_operator.weights import (
    Download,
    InContainer,
    Mounted,
    Weights,
    claim_of_uri,
    is_shared,
    place_of,
    runtime_model,
    shared_claim,
    shared_folder,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
KNOWN = Weights(COMMIT, 1000)
SHARED = {"cache": {"mode": "SharedPVC", "sharedPVC": {"claimName": "models"}}}


def deployment(uri: str, spec: dict[str, Any] | None = None, **model: Any) -> LLMDeployment:
    metadata = {"name": "small", "namespace": "models", "uid": "u-1"}
    return parse({"metadata": metadata, "spec": {"model": {"uri": uri} | model} | (spec or {})})


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("hf://acme/small-1b", Download("acme/small-1b", COMMIT)),
        ("hf://acme/small-1b/q4.gguf", Download("acme/small-1b/q4.gguf", COMMIT)),
        ("https://files.example/m/q4.gguf", Download("https://files.example/m/q4.gguf", COMMIT)),
        ("file:///models/small", InContainer("/models/small")),
        ("pvc://weights/small/v1", Mounted("weights", "/model", "/model/small/v1")),
        ("pvc://weights", Mounted("weights", "/model", "/model")),
        ("pvc://weights/", Mounted("weights", "/model", "/model")),
    ],
)
def test_each_scheme_has_its_place(uri: str, place: object) -> None:
    assert place_of(deployment(uri), KNOWN) == place


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("hf://acme/small-1b", f"/models/acme--small-1b/{COMMIT}"),
        ("hf://acme/small-1b/sub/q4.gguf", rf"/models/acme--small-1b/{COMMIT}-[0-9a-f]{{8}}/sub/q4\.gguf"),
        ("https://files.example/m/q4.gguf?x=1", r"/models/files.example--q4.gguf/[0-9a-f]{10}/q4\.gguf"),
    ],
)
def test_a_shared_cache_has_one_folder_per_model_and_commit(uri: str, path: str) -> None:
    place = place_of(deployment(uri, SHARED), KNOWN)
    assert isinstance(place, Mounted)
    assert (place.claim, place.mount_path) == ("models", "/models")
    assert re.fullmatch(path, place.path)


def test_a_shared_cache_of_the_operators_own_has_its_name() -> None:
    assert shared_claim(deployment("hf://a/b", {"cache": {"mode": "SharedPVC", "sharedPVC": {"size": "1Gi"}}})) == (
        "small-cache"
    )


@pytest.mark.parametrize("uri", ["pvc://weights/a", "file:///a"])
def test_what_lies_somewhere_already_is_not_downloaded_again(uri: str) -> None:
    assert not is_shared(deployment(uri, SHARED))


def test_another_choice_of_files_is_another_folder() -> None:
    folders = {
        shared_folder(deployment("hf://acme/small-1b", SHARED, files=files), COMMIT)
        for files in ({}, {"allow": ["*.json"]}, {"ignore": ["*.json"]}, {"allow": ["a", "b"]}, {"allow": ["ab"]})
    }
    assert len(folders) == 5


def test_files_of_two_urls_with_one_name_do_not_meet() -> None:
    uris = ("https://files.example/a/q4.gguf", "https://files.example/b/q4.gguf")
    assert len({shared_folder(deployment(uri, SHARED), None) for uri in uris}) == 2


@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=200))
def test_no_name_leads_out_of_the_claim(organization: str, name: str) -> None:
    folder = shared_folder(deployment(f"hf://{organization}/{name}", SHARED), COMMIT)
    slug, _, version = folder.partition("/")
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,100}", slug)
    assert slug.strip(".") == slug
    assert "/" not in version


def test_a_branch_is_no_folder_below_another() -> None:
    assert shared_folder(deployment("hf://acme/small", SHARED, revision="feature/x"), None) == "acme--small/feature-x"


def test_the_runtime_is_given_the_hubs_own_name() -> None:
    assert runtime_model(deployment("hf://acme/small-1b")) == "acme/small-1b"
    assert runtime_model(deployment("https://files.example/q4.gguf")) == "https://files.example/q4.gguf"


def test_only_a_claims_uri_names_a_claim() -> None:
    assert [claim_of_uri(uri) for uri in ("pvc://w/llama/3", "pvc://w", "hf://a/b", "w")] == ["w", "w", None, None]
