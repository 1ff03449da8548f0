import torch

from octavo_kernels.ops import AttentionShape
from octavo_kernels.qk_norm import qk_norm_reference
from octavo_kernels.rms_norm import rms_norm_reference


def test_each_head_of_q_and_k_is_normed_alone_and_v_passes() -> None:
    shape = AttentionShape(4, 2, 8, 1.0, None)
    qkv, q_weight, k_weight = torch.randn(3, 8 * 8), torch.randn(8), torch.randn(8)
    heads = qk_norm_reference(qkv, q_weight, k_weight, 1e-6, shape).view(3, 8, 8)
    before = qkv.view(3, 8, 8)
    for head in range(4):
        torch.testing.assert_close(heads[:, head], rms_norm_reference(before[:, head], q_weight, 1e-6))
    for head in (4, 5):
        torch.testing.assert_close(heads[:, head], rms_norm_reference(before[:, head], k_weight, 1e-6))
    assert torch.equal(heads[:, 6:], before[:, 6:])
