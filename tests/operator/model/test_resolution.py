import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from octavo_operator.api import Files, Model
from octavo_operator.model.files import manifest_digest
from octavo_operator.model.hub import Hub
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.resolution import resolve
from octavo_operator.reasons import Reason
from octavo_operator.status.redaction import redact

TINY = "hf://org/tiny"


async def problem_of(model: Model, hub: Hub, token: str | None = None) -> ModelProblem:
    with pytest.raises(ModelProblem) as caught:
        await resolve(model, token, hub)
    return caught.value


def main_folder(served: Any) -> Path:
    folder: Path = served.root / "org" / "tiny" / "main"
    return folder


async def test_a_repository_is_resolved_without_its_weights_being_read(hub: Hub, served: Any) -> None:
    resolved = await resolve(Model(uri=TINY), None, hub)
    assert (resolved.kind, resolved.name) == ("hf", "org/tiny")
    assert resolved.commit is not None
    assert [file.path for file in resolved.files] == ["config.json", "model.safetensors", "tokenizer.json"]
    assert resolved.parameters == 64 * 32 + 32 * 32 + 32
    assert resolved.bytes_total == sum(file.size for file in resolved.files)
    assert resolved.architecture == "LlamaForCausalLM"
    assert (resolved.digest, resolved.trust_remote_code) == (None, False)
    assert not any("resolve/main" in request for request in served.mirror.requests)  # pinned from the first byte


async def test_a_branch_that_moves_is_another_commit_and_the_old_one_stays(hub: Hub, served: Any) -> None:
    before = await resolve(Model(uri=TINY), None, hub)
    served.mirror.behave("org/tiny", branches={"main": "next"})
    after = await resolve(Model(uri=TINY), None, hub)
    assert after.commit != before.commit
    pinned = await resolve(Model(uri=TINY, revision=before.commit), None, hub)
    assert pinned == before


async def test_a_commit_that_is_not_there_is_refused(hub: Hub) -> None:
    problem = await problem_of(Model(uri=TINY, revision="0" * 40), hub)
    assert problem.reason is Reason.REVISION_NOT_FOUND


async def test_files_are_chosen_by_the_spec(hub: Hub) -> None:
    resolved = await resolve(Model(uri=TINY, files=Files(ignore=("tokenizer.json",))), None, hub)
    assert [file.path for file in resolved.files] == ["config.json", "model.safetensors"]
    problem = await problem_of(Model(uri=TINY, files=Files(allow=("*.onnx",))), hub)
    assert problem.reason is Reason.MODEL_NOT_FOUND
    assert "spec.model.files" in problem.message


async def test_truncated_weights_are_found_before_a_pod_runs(hub: Hub, served: Any) -> None:
    served.mirror.behave("org/tiny", truncate={"model.safetensors": 2000})
    problem = await problem_of(Model(uri=TINY), hub)
    assert problem.reason is Reason.MODEL_CORRUPT
    assert "org/tiny: model.safetensors" in problem.message


async def test_a_connection_that_breaks_is_no_damaged_model(hub: Hub, served: Any) -> None:
    served.mirror.behave("org/tiny", cut={"model.safetensors": 10})
    assert (await problem_of(Model(uri=TINY), hub)).reason is Reason.HUB_UNREACHABLE


@pytest.mark.parametrize("only", ["api", "files"])
async def test_a_rate_limit_is_kept_with_its_time(hub: Hub, served: Any, only: str) -> None:
    served.mirror.behave("org/tiny", status=429, retry_after="3", times=1, only=only)
    problem = await problem_of(Model(uri=TINY), hub)
    assert (problem.reason, problem.retry_after) == (Reason.MODEL_RATE_LIMITED, 3.0)
    assert await resolve(Model(uri=TINY), None, hub)


async def test_a_gated_model_needs_its_token_for_every_file(hub: Hub, served: Any) -> None:
    served.mirror.behave("org/tiny", token="hf_right")
    assert (await problem_of(Model(uri=TINY), hub, "hf_wrong")).reason is Reason.MODEL_ACCESS_DENIED
    assert await resolve(Model(uri=TINY), "hf_right\n", hub)


def digest_of(folder: Path) -> str:
    names = ("config.json", "model.safetensors", "tokenizer.json")
    return manifest_digest((name, hashlib.sha256((folder / name).read_bytes()).hexdigest()) for name in names)


async def test_a_digest_that_matches_is_kept_with_every_hash(hub: Hub, served: Any) -> None:
    digest = digest_of(main_folder(served))
    resolved = await resolve(Model(uri=TINY, digest=digest), None, hub)
    assert resolved.digest == digest
    assert all(file.sha256 for file in resolved.files)


async def test_a_digest_that_does_not_match_says_the_right_one(hub: Hub, served: Any) -> None:
    digest = digest_of(main_folder(served))
    problem = await problem_of(Model(uri=TINY, revision="next", digest=digest), hub)
    assert problem.reason is Reason.DIGEST_MISMATCH
    assert digest_of(served.root / "org" / "tiny" / "next") in redact(problem.message), "a person has to copy it"


async def test_one_gguf_file_of_a_repository_is_taken_alone(hub: Hub, served: Any, tiny_gguf: bytes) -> None:
    (main_folder(served) / "tiny.Q4.gguf").write_bytes(tiny_gguf)
    resolved = await resolve(Model(uri=f"{TINY}/tiny.Q4.gguf"), None, hub)
    assert (resolved.name, resolved.quantization) == ("org/tiny/tiny.Q4.gguf", "gguf")
    assert [file.path for file in resolved.files] == ["tiny.Q4.gguf"]
    assert resolved.parameters == 64 * 32 + 32 * 32
    problem = await problem_of(Model(uri=f"{TINY}/other.gguf"), hub)
    assert problem.reason is Reason.MODEL_NOT_FOUND
    assert "tiny.Q4.gguf" in problem.message


async def test_a_repository_of_gguf_files_asks_for_one(hub: Hub, served: Any, tiny_gguf: bytes) -> None:
    folder = served.root / "org" / "quants" / "main"
    folder.mkdir(parents=True)
    (folder / "a.gguf").write_bytes(tiny_gguf)
    allow = Files(allow=("*.gguf",))
    assert (await resolve(Model(uri="hf://org/quants", files=allow), None, hub)).quantization == "gguf"
    (folder / "b.gguf").write_bytes(tiny_gguf)
    problem = await problem_of(Model(uri="hf://org/quants", files=allow), hub)
    assert problem.reason is Reason.MODEL_UNSUPPORTED
    assert "hf://org/quants/a.gguf" in problem.message


async def test_an_unknown_architecture_is_refused(hub: Hub, served: Any, tiny_config: dict[str, Any]) -> None:
    config = tiny_config | {"architectures": ["MambaForCausalLM"]}
    (main_folder(served) / "config.json").write_text(json.dumps(config))
    assert (await problem_of(Model(uri=TINY), hub)).reason is Reason.MODEL_UNSUPPORTED


@pytest.mark.parametrize(("uri", "kind", "name"), [("pvc://claim/a/b", "pvc", "a/b"), ("file:///a/b", "file", "/a/b")])
async def test_a_claim_and_a_path_are_not_looked_into(hub: Hub, served: Any, uri: str, kind: str, name: str) -> None:
    resolved = await resolve(Model(uri=uri, trust_remote_code=True), None, hub)
    assert (resolved.kind, resolved.name, resolved.bytes_total, resolved.weights) == (kind, name, None, None)
    assert resolved.trust_remote_code
    assert not served.mirror.requests


async def test_an_unusable_uri_is_refused(hub: Hub) -> None:
    assert (await problem_of(Model(uri="s3://bucket/x"), hub)).reason is Reason.SPEC_INVALID


async def test_the_endpoint_of_the_spec_is_asked(hub: Hub, served: Any) -> None:
    resolved = await resolve(Model(uri=TINY, endpoint=f"{served.address}/"), None, hub)
    assert resolved.commit is not None


async def test_a_gguf_file_behind_a_url_is_sized(
    hub: Hub, served: Any, tiny_gguf: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (main_folder(served) / "x.gguf").write_bytes(tiny_gguf)
    near = f"{served.address}/org/tiny/resolve/main/x.gguf"
    ask: Callable[..., Any] = hub.read_url

    async def without_tls(url: str, *arguments: Any) -> Any:
        assert url == "https://host/x.gguf"
        return await ask(near, *arguments)

    monkeypatch.setattr(hub, "read_url", without_tls)
    resolved = await resolve(Model(uri="https://host/x.gguf"), None, hub)
    assert (resolved.kind, resolved.commit, resolved.bytes_total) == ("https", None, len(tiny_gguf))
    assert resolved.architecture == "LlamaForCausalLM"
