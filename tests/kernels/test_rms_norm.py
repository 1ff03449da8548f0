import torch
import torch.nn.functional as F  # noqa: N812

from octavo_kernels.rms_norm import add_rms_norm_reference, rms_norm_reference


def test_equals_the_norm_of_torch() -> None:
    x, weight = torch.randn(7, 33), torch.randn(33)
    torch.testing.assert_close(rms_norm_reference(x, weight, 1e-5), F.rms_norm(x, (33,), weight, 1e-5))


def test_a_row_of_zeros_stays_finite() -> None:
    assert rms_norm_reference(torch.zeros(1, 8), torch.ones(8), 1e-6).tolist() == [[0.0] * 8]


def test_the_sum_is_normed_and_handed_on() -> None:
    x, residual, weight = torch.randn(3, 16), torch.randn(3, 16), torch.randn(16)
    normed, total = add_rms_norm_reference(x, residual, weight, 1e-6)
    torch.testing.assert_close(total, x + residual)
    torch.testing.assert_close(normed, rms_norm_reference(x + residual, weight, 1e-6))
