import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.uri import (
    ClaimUri,
    FileUri,
    HubUri,
    ModelUri,
    UrlUri,
    is_downloaded,
    model_name,
    parse_uri,
)
from octavo_operator.reasons import Reason


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("hf://HuggingFaceTB/SmolLM2-135M-Instruct", HubUri("HuggingFaceTB/SmolLM2-135M-Instruct")),
        ("hf://org/name/Q4_K_M/file.gguf", HubUri("org/name", "Q4_K_M/file.gguf")),
        ("pvc://models", ClaimUri("models")),
        ("pvc://models/", ClaimUri("models")),
        ("pvc://models/llama/v2/", ClaimUri("models", "llama/v2")),
        ("file:///opt/models/llama", FileUri("/opt/models/llama")),
        ("https://host:8443/a/b.gguf", UrlUri("https://host:8443/a/b.gguf")),
    ],
)
def test_each_form_is_read(text: str, uri: ModelUri) -> None:
    assert parse_uri(text) == uri


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("", "hf://ORG/NAME"),
        ("org/name", "hf://ORG/NAME"),
        ("s3://bucket/model", "hf://ORG/NAME"),
        ("hf://name", "hf://ORG/NAME"),
        ("hf:///name", "hf://ORG/NAME"),
        ("hf://org/../x", "hf://ORG/NAME"),
        ("hf://org/na me", "hf://ORG/NAME"),
        ("hf://org/name@main", "spec.model.revision"),
        ("hf://org/name/config.json", "FILE.gguf"),
        ("hf://org/name/../x.gguf", "FILE.gguf"),
        ("pvc://Upper/x", "PersistentVolumeClaim"),
        ("pvc:///x", "PersistentVolumeClaim"),
        ("pvc://claim/../x", "without"),
        ("pvc://claim//x", "without"),
        ("file://models/x", "three slashes"),
        ("file:///", "three slashes"),
        ("file:///a/../b", "three slashes"),
        ("http://host/x.gguf", "https://HOST/PATH.gguf"),
        ("https://host/x.safetensors", "https://HOST/PATH.gguf"),
        ("https:///x.gguf", "https://HOST/PATH.gguf"),
        ("https://[bad/x.gguf", "https://HOST/PATH.gguf"),
        ("https://host/x.gguf?sig=1", "without ?"),
    ],
)
def test_anything_else_is_refused_with_the_field_and_what_to_write(text: str, remedy: str) -> None:
    with pytest.raises(ModelProblem) as caught:
        parse_uri(text)
    assert caught.value.reason is Reason.SPEC_INVALID
    assert "spec.model.uri" in caught.value.message
    assert remedy in caught.value.message


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ModelProblem, match=r"spec\.model\.credentials") as caught:
        parse_uri("https://user:secret-word@host/x.gguf")
    assert "secret-word" not in caught.value.message


def test_a_long_uri_is_cut_in_the_message() -> None:
    with pytest.raises(ModelProblem) as caught:
        parse_uri("s3://" + "x" * 2000)
    assert len(caught.value.message) < 300


def test_only_hubs_and_urls_are_downloaded() -> None:
    uris = ["hf://a/b", "https://h/x.gguf", "pvc://c/x", "file:///x"]
    assert [is_downloaded(parse_uri(uri)) for uri in uris] == [True, True, False, False]


def test_the_runtime_is_given_the_name_without_its_scheme() -> None:
    uris = ["hf://a/b", "hf://a/b/f.gguf", "https://h/x.gguf", "pvc://c/x/y", "file:///x"]
    assert [model_name(parse_uri(uri)) for uri in uris] == ["a/b", "a/b/f.gguf", "https://h/x.gguf", "x/y", "/x"]


@given(
    st.one_of(
        st.text(), st.sampled_from(["hf", "pvc", "file", "https"]).flatmap(lambda s: st.text().map(f"{s}://".__add__))
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ModelProblem):
        parse_uri(text)
