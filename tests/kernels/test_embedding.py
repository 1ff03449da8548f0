import pytest
import torch

from octavo_kernels.embedding import embedding_reference


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rows_of_the_table_come_in_the_order_of_the_tokens(dtype: torch.dtype) -> None:
    table = torch.randn(10, 6).to(dtype)
    rows = embedding_reference(table, torch.tensor([9, 0, 9], dtype=torch.int32))
    assert rows.dtype is torch.float32
    assert torch.equal(rows, table[[9, 0, 9]].float())
