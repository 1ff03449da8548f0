import json
from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.model.http_get import Span
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.weight_facts import CONFIG, INDEX, gguf_facts, safetensors_facts
from octavo_operator.reasons import Reason

Build = Callable[[dict[str, tuple[str, tuple[int, ...]]]], bytes]


class Files:
    """Files of a commit, in memory."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents = contents

    @property
    def sizes(self) -> dict[str, int]:
        return {path: len(content) for path, content in self.contents.items()}

    async def read(self, path: str, span: Span | None = None) -> bytes:
        content = self.contents[path]
        return content if span is None else content[span.start : span.start + span.length]


def folder(config: dict[str, Any], files: dict[str, bytes]) -> Files:
    return Files({CONFIG: json.dumps(config).encode(), **files})


async def refused(files: Files) -> ModelProblem:
    with pytest.raises(ModelProblem) as caught:
        await safetensors_facts("org/x", files.sizes, files.read)
    assert "org/x" in caught.value.message
    return caught.value


async def test_plain_weights_are_counted_from_their_headers(tiny_config: dict[str, Any], safetensors: Build) -> None:
    files = folder(tiny_config, {"model.safetensors": safetensors({"x": ("BF16", (10, 10))})})
    facts = await safetensors_facts("org/x", files.sizes, files.read)
    assert (facts.format, facts.num_bytes, facts.parameters, facts.quantization) == ("safetensors", 200, 100, None)
    assert facts.stored_numbers == {"BF16": 100}
    assert facts.shape is not None
    assert facts.shape.num_layers == 4


async def test_only_the_files_that_the_index_names_are_weights(tiny_config: dict[str, Any], safetensors: Build) -> None:
    content = safetensors({"x": ("BF16", (10,))})
    index = {"weight_map": {"x": "model-1.safetensors", "y": "model-2.safetensors"}}
    files = folder(
        tiny_config,
        {
            INDEX: json.dumps(index).encode(),
            "model-1.safetensors": content,
            "model-2.safetensors": content,
            "consolidated.safetensors": content,
        },
    )
    assert (await safetensors_facts("org/x", files.sizes, files.read)).num_bytes == 40


async def test_weights_in_other_folders_are_not_counted(tiny_config: dict[str, Any], safetensors: Build) -> None:
    content = safetensors({"x": ("BF16", (10,))})
    files = folder(tiny_config, {"model.safetensors": content, "original/model.safetensors": content})
    assert (await safetensors_facts("org/x", files.sizes, files.read)).num_bytes == 20


async def test_a_shard_that_is_not_there_is_named(tiny_config: dict[str, Any]) -> None:
    index = {"weight_map": {"x": "model-1.safetensors"}}
    problem = await refused(folder(tiny_config, {INDEX: json.dumps(index).encode()}))
    assert problem.reason is Reason.MODEL_CORRUPT
    assert "model-1.safetensors" in problem.message


@pytest.mark.parametrize(
    ("section", "method"),
    [({"quant_method": "AWQ", "bits": 4}, "awq"), ({"bits": 4}, "unknown"), ([], "unknown"), (None, None)],
)
async def test_the_checkpoints_own_quantization_is_found(
    tiny_config: dict[str, Any], safetensors: Build, section: object, method: str | None
) -> None:
    files = folder(
        tiny_config | {"quantization_config": section}, {"model.safetensors": safetensors({"x": ("I32", (10,))})}
    )
    facts = await safetensors_facts("org/x", files.sizes, files.read)
    assert facts.quantization == method
    assert (facts.parameters == 10) is (method is None)  # packed numbers are no parameters


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe", b"", b"[" * 100_000])
async def test_a_config_that_is_no_object_is_damaged(safetensors: Build, content: bytes) -> None:
    problem = await refused(Files({CONFIG: content, "model.safetensors": safetensors({})}))
    assert problem.reason is Reason.MODEL_CORRUPT
    assert CONFIG in problem.message


async def test_a_repository_without_config_or_weights_is_unsupported(
    tiny_config: dict[str, Any], safetensors: Build
) -> None:
    problem = await refused(Files({"model.safetensors": safetensors({})}))
    assert problem.reason is Reason.MODEL_UNSUPPORTED
    problem = await refused(folder(tiny_config, {"pytorch_model.bin": b"x"}))
    assert problem.reason is Reason.MODEL_UNSUPPORTED
    assert ".safetensors" in problem.message


async def test_the_architecture_is_looked_at_before_the_weights(tiny_config: dict[str, Any]) -> None:
    problem = await refused(folder(tiny_config | {"architectures": ["MambaForCausalLM"]}, {}))
    assert problem.reason is Reason.MODEL_UNSUPPORTED
    assert "LlamaForCausalLM" in problem.message


async def test_a_gguf_file_is_its_own_config(tiny_gguf: bytes) -> None:
    files = Files({"f.gguf": tiny_gguf})
    facts = await gguf_facts("org/x: f.gguf", "f.gguf", len(tiny_gguf), files.read)
    assert (facts.format, facts.num_bytes, facts.parameters) == ("gguf", len(tiny_gguf), 64 * 32 + 32 * 32)
    assert facts.shape is not None
    assert facts.shape.vocab_size == 64
