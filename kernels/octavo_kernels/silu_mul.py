"""Gate of the MLP: silu(gate) * up, with silu(x) = x / (1 + exp(-x)).

Gives the reference function.
"""

import torch
import torch.nn.functional as F  # noqa: N812


def silu_mul_reference(gate_up: torch.Tensor) -> torch.Tensor:
    """gate_up [T, 2 I], gate first -> [T, I] float32."""
    gate, up = gate_up.float().chunk(2, dim=-1)
    return F.silu(gate) * up
