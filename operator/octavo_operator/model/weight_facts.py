"""Format, size and shape of a model's weights (`WeightFacts`), from config.json and the headers of its weight files.

Given a function that reads files of one commit. A damaged or unsupported model is a ModelProblem naming the file.
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from octavo_operator.model.gguf_header import GgufSummary, read_gguf
from octavo_operator.model.http_get import Span
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.resolved import WeightFacts
from octavo_operator.model.safetensors_header import index_files, read_summary
from octavo_operator.model.shape import corrupt, count_parameters, shape_of_config, shape_of_gguf
from octavo_operator.reasons import Reason

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"


class ReadFile(Protocol):
    """Reads a file of the commit, or a span of it."""

    def __call__(self, path: str, span: Span | None = None) -> Awaitable[bytes]: ...


async def safetensors_facts(repository: str, sizes: Mapping[str, int], read: ReadFile) -> WeightFacts:
    """Of the files in `sizes` (path -> bytes), which are those that are fetched."""
    if CONFIG not in sizes:
        raise ModelProblem(
            Reason.MODEL_UNSUPPORTED,
            f"{repository} has no {CONFIG} among the files chosen; choose a model in the Hugging Face layout, "
            f"or name a GGUF file: hf://{repository}/FILE.gguf.",
        )
    origin = f"{repository}: {CONFIG}"
    config = _json_object(await read(CONFIG), origin)
    shape = shape_of_config(config, origin)
    paths = await _weight_files(repository, sizes, read)
    summary = await read_summary(repository, {path: sizes[path] for path in paths}, read)
    quantization = _quantization(config)
    return WeightFacts(
        format="safetensors",
        num_bytes=summary.total_bytes,
        stored_numbers=dict(summary.numbers),
        stored_bytes=dict(summary.num_bytes),
        parameters=count_parameters(shape) if quantization else summary.total_numbers,
        quantization=quantization,
        shape=shape,
    )


async def gguf_facts(origin: str, path: str, size: int, read: ReadFile) -> WeightFacts:
    """Of one GGUF file. `origin` is what errors call it."""

    async def part(span: Span) -> bytes:
        return await read(path, span)

    summary = await read_gguf(origin, size, part)
    return WeightFacts(format="gguf", num_bytes=size) if summary is None else _of_summary(summary, size, origin)


def _of_summary(summary: GgufSummary, size: int, origin: str) -> WeightFacts:
    shape = shape_of_gguf(summary.metadata, summary.shapes, origin)
    return WeightFacts(format="gguf", num_bytes=size, parameters=summary.total_numbers, shape=shape)


async def _weight_files(repository: str, sizes: Mapping[str, int], read: ReadFile) -> Sequence[str]:
    """Those that the runtime loads: what the index names, else every safetensors file beside config.json."""
    if INDEX in sizes:
        origin = f"{repository}: {INDEX}"
        named = index_files(await read(INDEX), origin)
        absent = [path for path in named if path not in sizes]
        if absent:
            raise corrupt(origin, f"it names {absent[0][:120]}, which is not among the files that are fetched")
        return named
    found = [path for path in sizes if path.endswith(".safetensors") and "/" not in path]
    if not found:
        raise ModelProblem(
            Reason.MODEL_UNSUPPORTED,
            f"{repository} has no .safetensors file among those chosen; choose a model or a revision whose weights are "
            "safetensors or GGUF, or let spec.model.files take them in.",
        )
    return found


def _json_object(content: bytes, origin: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise corrupt(origin, "it is not valid JSON") from None
    if not isinstance(value, dict):
        raise corrupt(origin, "it must hold a JSON object")
    return value


def _quantization(config: Mapping[str, Any]) -> str | None:
    """`quant_method` of the config; "unknown" when there is a section that does not say."""
    section = config.get("quantization_config")
    if section is None:
        return None
    method = section.get("quant_method") if isinstance(section, dict) else None
    return str(method)[:40].lower() if method else "unknown"
