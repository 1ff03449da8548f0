"""`WeightLoader`: from named tensors to packed weights, one group at a time.

Given a weight source, a backend and the dtype to keep; checks presence and shape, joins what is multiplied together
(q, k, v; gate, up), packs it and lets the original go, so the peak is the packed model plus one group.
"""

from collections.abc import Callable, Sequence

import torch

from octavo_kernels.backend import Backend
from octavo_kernels.ops import PackedLinear
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.weights import WeightSource

Progress = Callable[[int, int], None]
"""Called with (bytes read, bytes in all)."""


class WeightLoader:
    """Reads, checks, joins and packs."""

    def __init__(self, source: WeightSource, backend: Backend, dtype: torch.dtype, progress: Progress) -> None:
        self._source = source
        self._backend = backend
        self._dtype = dtype
        self._progress = progress
        self._done = 0
        self._total = sum(source.sizes.values())

    def has(self, name: str) -> bool:
        """Whether the checkpoint holds the tensor."""
        return name in self._source.sizes

    def vector(self, name: str, size: int) -> torch.Tensor:
        """A norm's weight, float32 [size]."""
        return self._read(name, (size,), torch.float32).clone()

    def linear(self, stems: Sequence[str], rows: Sequence[int], columns: int, bias: bool = False) -> PackedLinear:
        """The layers `stem` ([rows, columns] each) on top of each other, packed as one."""
        weight = torch.empty(sum(rows), columns, dtype=self._dtype)
        for stem, part in zip(stems, torch.split(weight, list(rows)), strict=True):
            part.copy_(self._read(f"{stem}.weight", tuple(part.shape), self._dtype))
        joined = None
        if bias:
            joined = torch.empty(sum(rows), dtype=self._dtype)
            for stem, part in zip(stems, torch.split(joined, list(rows)), strict=True):
                part.copy_(self._read(f"{stem}.bias", tuple(part.shape), self._dtype))
        return self._backend.pack_linear(weight, joined)

    def _read(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        if not self.has(name):
            raise StartError(
                StartCause.MODEL_CORRUPT,
                f"{self._source.origin} has no tensor {name}, which its architecture needs; download the model again.",
            )
        tensor = self._source.load(name, dtype)
        if tuple(tensor.shape) != shape:
            raise StartError(
                StartCause.MODEL_CORRUPT,
                f"{self._source.origin}: tensor {name} is {list(tensor.shape)}, its config says {list(shape)}; "
                "the weights and the config belong to different models, download the model again.",
            )
        self._done += self._source.sizes[name]
        self._progress(self._done, self._total)
        return tensor
