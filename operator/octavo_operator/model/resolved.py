"""`ResolvedModel`: what a `spec.model` stands for, found once per rollout and kept with the revision.

Frozen, and JSON both ways: the operator reads it back from the ControllerRevision. Holds no token.
"""

from typing import Any, Literal

import msgspec

from octavo_operator.model.shape import ModelShape


class ModelFile(msgspec.Struct, frozen=True, rename="camel"):
    """A file that is fetched; `sha256` (hex) where it is known."""

    path: str
    size: int
    sha256: str | None = None


class WeightFacts(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Of the weight files, from their headers. Sizes in bytes, as the weights are stored."""

    format: Literal["safetensors", "gguf"]
    num_bytes: int
    stored_numbers: dict[str, int] = {}  # safetensors: numbers per number format, such as BF16
    stored_bytes: dict[str, int] = {}
    parameters: int | None = None
    quantization: str | None = None  # as config.json says: awq, gptq, fp8 ...
    shape: ModelShape | None = None  # None: a GGUF file whose header is too long to be read from here


class ResolvedModel(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """None: not known before a pod has read the weights (nearly all of a pvc:// or file:// model)."""

    kind: Literal["hf", "pvc", "file", "https"]
    name: str  # as model_name() has it: ORG/NAME, ORG/NAME/FILE.gguf, a URL or a path
    commit: str | None = None  # 40 hex digits
    files: tuple[ModelFile, ...] = ()
    weights: WeightFacts | None = None
    digest: str | None = None  # of the files, only when the spec asked for one
    trust_remote_code: bool = False

    @property
    def bytes_total(self) -> int | None:
        """Of all files that are fetched."""
        return sum(file.size for file in self.files) if self.files else None

    @property
    def weight_bytes(self) -> int | None:
        """Of the tensors, as they are stored."""
        return self.weights.num_bytes if self.weights else None

    @property
    def shape(self) -> ModelShape | None:
        """The sizes that the memory plan computes with."""
        return self.weights.shape if self.weights else None

    @property
    def architecture(self) -> str | None:
        """Hugging Face's class name."""
        return self.shape.architecture if self.shape else None

    @property
    def parameters(self) -> int | None:
        """Numbers in all weights."""
        return self.weights.parameters if self.weights else None

    @property
    def quantization(self) -> str | None:
        """Of the checkpoint: awq, gptq, fp8, gguf ...; None for plain weights."""
        if self.weights is None:
            return None
        return "gguf" if self.weights.format == "gguf" else self.weights.quantization

    def to_data(self) -> dict[str, Any]:
        """JSON, for the data of a ControllerRevision."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    @classmethod
    def from_data(cls, data: object) -> "ResolvedModel":
        """Of `to_data()`; fields that a newer operator wrote are passed over."""
        return msgspec.convert(data, cls)


def status_of(model: ResolvedModel) -> dict[str, Any]:
    """For `status.model`; what is not known is left out."""
    fields = {
        "resolvedRevision": model.commit,
        "bytes": model.bytes_total,
        "parameters": model.parameters,
        "architecture": model.architecture,
        "quantization": model.quantization,
    }
    return {name: value for name, value in fields.items() if value is not None}
