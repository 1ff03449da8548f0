"""HTTPS: it comes with its certificate, the Service follows the pods, and what is missing leaves clients as they are."""

import asyncio
import ssl
from pathlib import Path

import aiohttp
import pytest
from e2e.cluster.commands import run
from e2e.kubernetes import Object, condition
from e2e.manifests import START_S, small_model
from e2e.streams import ask, wait_reachable
from e2e.workspace import Workspace

pytestmark = pytest.mark.usefixtures("model_claim")

NAME = "smollm"
HOST = "models.example"


def manifest(**access: Object) -> Object:
    return small_model(NAME, access=access)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Certificate and key of HOST, its own authority."""
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    names = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    run([*made, *names, "-keyout", key, "-out", certificate])
    return certificate, key


async def test_a_model_turns_to_https_when_its_certificate_is_there(
    workspace: Workspace, certificate: tuple[Path, Path]
) -> None:
    await workspace.apply(manifest())
    await workspace.wait_ready(NAME, START_S)
    plain = await workspace.url(NAME)
    await wait_reachable(plain)

    await workspace.apply(manifest(tls={"secretName": "cert"}))
    seen = await workspace.wait_condition(NAME, "Ready", "False", reason="ReferenceMissing")
    assert "Secret cert" in condition(seen, "Ready")["message"]
    assert await workspace.url(NAME) == plain
    assert "Paris" in await ask(plain, NAME, "What is the capital of France?")

    chain, key = certificate
    await workspace.kubectl("create", "secret", "tls", "cert", f"--cert={chain}", f"--key={key}")
    ready = await workspace.wait_ready(NAME, START_S)
    url = await workspace.url(NAME)
    assert url.startswith("https://")
    assert ready["status"]["url"].startswith("https://")
    trust = await asyncio.to_thread(ssl.create_default_context, cafile=str(chain))
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{url}/v1/models", ssl=trust, server_hostname=HOST) as answer,
    ):
        assert (await answer.json())["data"][0]["id"] == NAME
