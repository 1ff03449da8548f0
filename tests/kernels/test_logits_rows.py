import torch

from octavo_kernels.logits_rows import logits_rows_reference


def test_only_the_wanted_rows_stay() -> None:
    x = torch.arange(12.0).view(4, 3)
    assert logits_rows_reference(x, torch.tensor([3, 0], dtype=torch.int32)).tolist() == [[9, 10, 11], [0, 1, 2]]
    assert logits_rows_reference(x, torch.empty(0, dtype=torch.int32)).shape == (0, 3)
