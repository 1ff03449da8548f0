"""Which architectures the runtime serves. A contract test compares the list with the runtime's registry. Pure."""

from collections.abc import Mapping, Sequence

from octavo_operator.model.problem import ModelProblem
from octavo_operator.reasons import Reason

SERVED = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
"""Hugging Face's class names, as `architectures` of a config.json has them."""

SERVED_IN_GGUF: Mapping[str, str] = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
"""`general.architecture` of a GGUF file -> class name."""


def served_architecture(names: Sequence[str], origin: str) -> str:
    """The first name that is served. Raises ModelProblem(MODEL_UNSUPPORTED), which lists what is."""
    for name in names:
        if name in SERVED:
            return name
    raise _unsupported(origin, names[0] if names else "(none)", SERVED)


def served_gguf_architecture(name: object, origin: str) -> str:
    """The class name for a GGUF file's architecture. Raises ModelProblem(MODEL_UNSUPPORTED)."""
    architecture = SERVED_IN_GGUF.get(name) if isinstance(name, str) else None
    if architecture is None:
        raise _unsupported(origin, str(name), tuple(SERVED_IN_GGUF))
    return architecture


def _unsupported(origin: str, name: str, served: Sequence[str]) -> ModelProblem:
    return ModelProblem(
        Reason.MODEL_UNSUPPORTED,
        f"{origin} has the architecture {name[:80]}, which Octavo does not serve; choose a model with one of "
        f"{', '.join(served)}.",
    )
