"""Token embedding: row token_ids[t] of the [vocab, H] table.

Gives the reference function. The table may be the one that the lm_head multiplies with (tied embeddings), so backends
gather from their packed form.
"""

import torch


def embedding_reference(table: torch.Tensor, token_ids: torch.Tensor) -> torch.Tensor:
    """table [vocab, H] of any float dtype, token_ids [T] int32 -> [T, H] float32."""
    return table.index_select(0, token_ids).float()
