"""What the container is told by its environment, and what it never is."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.desired.environment import download_environment

CREDENTIALS = {"secretRef": {"name": "hub-token"}}
SHARED = {"mode": "SharedPVC", "sharedPVC": {"claimName": "models"}}
MODEL = {"uri": "hf://acme/small-1b", "credentials": CREDENTIALS, "endpoint": "https://mirror.example/"}


def test_every_cache_is_on_a_folder_that_any_user_may_write(render: Callable[..., Any]) -> None:
    environment = render({}).environment
    for name in ("HOME", "XDG_CACHE_HOME", "HF_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        assert environment[name]["value"].startswith("/cache")


def test_a_user_id_without_a_name_gets_one(render: Callable[..., Any]) -> None:
    assert render({}).environment["USER"]["value"] == "octavo"


def test_the_pod_knows_its_name(render: Callable[..., Any]) -> None:
    assert render({}).environment["POD_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"


def test_a_token_is_only_ever_a_reference(render: Callable[..., Any]) -> None:
    reference = render({"model": MODEL}).environment["HF_TOKEN"]
    assert reference == {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub-token", "key": "HF_TOKEN"}}}
    named = MODEL | {"credentials": {"secretRef": {"name": "hub-token", "key": "token"}}}
    environment = render({"model": named}).environment
    assert environment["HF_TOKEN"]["valueFrom"]["secretKeyRef"]["key"] == "token"


def test_a_mirror_is_asked_instead_of_the_hub(render: Callable[..., Any]) -> None:
    assert render({"model": MODEL}).environment["HF_ENDPOINT"]["value"] == "https://mirror.example"
    defaults = render({}, hub_endpoint="https://operators.example").environment
    assert defaults["HF_ENDPOINT"]["value"] == "https://operators.example"
    assert "HF_ENDPOINT" not in render({}).environment


@pytest.mark.parametrize(
    "spec",
    [
        {"model": MODEL, "cache": SHARED},
        {"model": {"uri": "pvc://weights/a"}},
        {"model": {"uri": "file:///models/a"}},
    ],
)
def test_a_pod_that_has_its_weights_asks_nobody_and_holds_no_token(
    spec: dict[str, Any], render: Callable[..., Any]
) -> None:
    environment = render(spec).environment
    assert environment["HF_HUB_OFFLINE"]["value"] == "1"
    assert not environment.keys() & {"HF_TOKEN", "HF_ENDPOINT"}


def test_the_downloader_has_the_token_that_its_pods_do_not_need(render: Callable[..., Any]) -> None:
    rendered = render({"model": MODEL, "cache": SHARED})
    names = {variable["name"] for variable in download_environment(rendered.deployment, rendered.effective)}
    assert names >= {"HF_TOKEN", "HF_ENDPOINT", "HF_HOME"}
    assert "HF_HUB_OFFLINE" not in names
