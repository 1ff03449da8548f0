import pytest
import torch

from octavo_kernels.linear import DenseLinear, linear_reference
from octavo_kernels.torch_cpu_backend import OneDnnLinear


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_products_are_those_of_the_widened_weight(dtype: torch.dtype) -> None:
    x, weight, bias = torch.randn(5, 19), torch.randn(7, 19).to(dtype), torch.randn(7).to(dtype)
    expected = x.double() @ weight.double().T + bias.double()
    torch.testing.assert_close(linear_reference(x, weight, bias).double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("num_rows", [0, 1, 3, 40])
@pytest.mark.parametrize("bias", [False, True])
def test_the_packed_weight_gives_the_same_before_and_after_a_lookup(num_rows: int, bias: bool) -> None:
    weight, offset = torch.randn(37, 64), torch.randn(37) if bias else None
    x = torch.randn(num_rows, 64)
    packed = OneDnnLinear(weight, offset)
    expected = linear_reference(x, weight, offset)
    torch.testing.assert_close(packed.multiply(x), expected, atol=1e-4, rtol=1e-4)
    assert torch.equal(packed.rows(), weight)
    torch.testing.assert_close(packed.multiply(x), expected, atol=1e-4, rtol=1e-4)


def test_sizes_are_those_of_the_weight() -> None:
    dense, packed = DenseLinear(torch.zeros(3, 5), None), OneDnnLinear(torch.zeros(3, 5), None)
    assert (dense.out_features, dense.in_features) == (packed.out_features, packed.in_features) == (3, 5)
