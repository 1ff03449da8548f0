"""The newcomer's story: apply four lines, wait, ask; and what kubectl shows on the way."""

import time

import pytest
from e2e.streams import ask, wait_reachable
from e2e.workspace import Workspace

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("model_claim")]

MANIFEST = """
apiVersion: octavo.dev/v1alpha1
kind: LLMDeployment
metadata: {name: smollm}
spec: {model: {uri: "pvc://model"}, engine: {device: cpu}}
"""


async def test_an_applied_manifest_becomes_a_service_that_answers(workspace: Workspace) -> None:
    started = time.monotonic()
    assert "created" in await workspace.apply(MANIFEST)
    waited = await workspace.kubectl("wait", "llmdeployment/smollm", "--for=condition=Ready", "--timeout=90s")
    seconds = time.monotonic() - started
    assert "condition met" in waited
    url = await workspace.url("smollm")
    await wait_reachable(url)
    answer = await ask(url, "smollm", "What is the capital of France?")
    assert "Paris" in answer
    assert seconds <= 60, f"{seconds:.1f} s from apply to Ready"


async def test_kubectl_shows_what_a_person_asks_first(workspace: Workspace) -> None:
    await workspace.apply(MANIFEST)
    await workspace.wait_ready("smollm")
    table = await workspace.kubectl("get", "llmd")
    header, row = table.splitlines()
    assert header.split() == ["NAME", "MODEL", "PHASE", "READY", "REASON", "AGE"]
    assert row.split()[:5] == ["smollm", "pvc://model", "Ready", "1/1", "Serving"]
    described = await workspace.kubectl("describe", "llmd", "smollm")
    assert "Serving" in described
    explained = await workspace.kubectl("explain", "llmdeployment.spec.model.uri")
    assert "hf://" in explained
