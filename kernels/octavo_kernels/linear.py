"""Linear layer: y = x W^T + b, W [out_features, in_features].

Gives the reference function, and `DenseLinear`, the unpacked weight that plain-torch backends multiply.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812


@dataclass(frozen=True, slots=True)
class DenseLinear:
    """A weight as it is: `weight` [N, K], `bias` [N] or None."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    @property
    def in_features(self) -> int:
        return self.weight.shape[1]

    @property
    def out_features(self) -> int:
        return self.weight.shape[0]


def linear_reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """x [T, K], weight [N, K] -> [T, N]; the weight is widened to float32, products and sums are float32."""
    return F.linear(x.float(), weight.float(), None if bias is None else bias.float())
