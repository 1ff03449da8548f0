import torch

from octavo_kernels.silu_mul import silu_mul_reference


def test_the_first_half_gates_the_second() -> None:
    gate, up = torch.randn(5, 12, dtype=torch.float64), torch.randn(5, 12, dtype=torch.float64)
    expected = gate / (1 + (-gate).exp()) * up
    actual = silu_mul_reference(torch.cat([gate, up], dim=-1).float())
    torch.testing.assert_close(actual.double(), expected, atol=1e-6, rtol=1e-5)


def test_large_values_do_not_overflow() -> None:
    assert silu_mul_reference(torch.tensor([[-1e4, 1e4, 1.0, 1.0]])).tolist() == [[0.0, 1e4]]
