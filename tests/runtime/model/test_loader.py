from collections.abc import Mapping

import pytest
import torch

from octavo_kernels.linear import DenseLinear
from octavo_kernels.reference_backend import ReferenceBackend
from octavo_runtime.errors import StartError
from octavo_runtime.model.loader import WeightLoader
from octavo_runtime.model.registry import no_progress


class MemorySource:
    """Tensors from a dictionary."""

    origin = "memory"

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self._tensors = tensors
        self.sizes = {name: tensor.nbytes for name, tensor in tensors.items()}

    def load(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        return self._tensors[name].to(dtype)


def make_loader(tensors: Mapping[str, torch.Tensor], dtype: torch.dtype = torch.float32) -> WeightLoader:
    return WeightLoader(MemorySource(tensors), ReferenceBackend(), dtype, no_progress)


def test_layers_are_joined_top_to_bottom_with_their_biases() -> None:
    tensors = {
        "a.weight": torch.randn(2, 3),
        "b.weight": torch.randn(4, 3),
        "a.bias": torch.randn(2),
        "b.bias": torch.randn(4),
    }
    joined = make_loader(tensors).linear(["a", "b"], [2, 4], 3, bias=True)
    assert isinstance(joined, DenseLinear)
    assert torch.equal(joined.weight, torch.cat([tensors["a.weight"], tensors["b.weight"]]))
    assert joined.bias is not None
    assert torch.equal(joined.bias, torch.cat([tensors["a.bias"], tensors["b.bias"]]))


def test_matrices_take_the_models_dtype_and_vectors_stay_float32() -> None:
    loader = make_loader({"a.weight": torch.randn(2, 3), "n": torch.randn(3).bfloat16()}, torch.bfloat16)
    matrix = loader.linear(["a"], [2], 3)
    assert isinstance(matrix, DenseLinear)
    assert matrix.weight.dtype is torch.bfloat16
    assert loader.vector("n", 3).dtype is torch.float32


def test_a_missing_bias_is_named() -> None:
    with pytest.raises(StartError, match=r"memory has no tensor a\.bias"):
        make_loader({"a.weight": torch.randn(2, 3)}).linear(["a"], [2], 3, bias=True)
