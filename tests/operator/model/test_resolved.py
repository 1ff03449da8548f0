import json
from typing import Any

from octavo_operator.model.resolved import ModelFile, ResolvedModel, WeightFacts, status_of
from octavo_operator.model.shape import shape_of_config


def resolved(tiny_config: dict[str, Any]) -> ResolvedModel:
    weights = WeightFacts(
        format="safetensors", num_bytes=200, parameters=100, shape=shape_of_config(tiny_config, "config.json")
    )
    files = (ModelFile("config.json", 10), ModelFile("model.safetensors", 300, "ab" * 32))
    return ResolvedModel(kind="hf", name="org/x", commit="c" * 40, files=files, weights=weights)


def test_what_is_known_is_read_from_one_place(tiny_config: dict[str, Any]) -> None:
    model = resolved(tiny_config)
    assert (model.bytes_total, model.weight_bytes, model.parameters) == (310, 200, 100)
    assert (model.architecture, model.quantization) == ("LlamaForCausalLM", None)


def test_it_survives_the_way_through_a_controller_revision(tiny_config: dict[str, Any]) -> None:
    model = resolved(tiny_config)
    data = json.loads(json.dumps(model.to_data()))
    assert ResolvedModel.from_data(data) == model
    assert ResolvedModel.from_data(data | {"fieldOfTomorrow": 1}) == model


def test_status_shows_what_is_known_and_nothing_else(tiny_config: dict[str, Any]) -> None:
    assert status_of(resolved(tiny_config)) == {
        "resolvedRevision": "c" * 40,
        "bytes": 310,
        "parameters": 100,
        "architecture": "LlamaForCausalLM",
    }
    assert status_of(ResolvedModel(kind="pvc", name="x")) == {}


def test_a_gguf_file_is_called_so() -> None:
    model = ResolvedModel(kind="https", name="x", weights=WeightFacts(format="gguf", num_bytes=1))
    assert model.quantization == "gguf"
    assert (model.shape, model.architecture) == (None, None)
