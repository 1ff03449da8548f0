"""`InputBuilder`: StepPlan -> Batch, and where each row's logits will be.

Numpy int32 buffers are kept and grown, the work per token is vectorised: a step of 256 decodes costs well under a
millisecond. Knows no model.
"""

from array import array
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from octavo_kernels.ops import Batch
from octavo_runtime.engine.plan import Row, StepPlan

IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class LogitsLayout:
    """Per row of the plan: the logits row it is sampled from (-1: none), and the first of its prompt-target rows."""

    sampled: tuple[int, ...]
    first_target: tuple[int, ...]


class InputBuilder:
    """Reuses its buffers: a batch is valid until the next one is built."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._buffers: dict[str, IntArray] = {}

    def build(self, plan: StepPlan) -> tuple[Batch, LogitsLayout]:
        """Tokens of all rows one after the other."""
        rows = plan.rows
        lengths = np.fromiter((len(row.token_ids) for row in rows), np.int32, len(rows))
        starts = np.fromiter((row.start for row in rows), np.int32, len(rows))
        query_start = self._buffer("query_start", len(rows) + 1)
        query_start[0] = 0
        np.cumsum(lengths, out=query_start[1:])
        num_tokens = int(query_start[-1])
        token_ids = self._fill("token_ids", [row.token_ids for row in rows])
        context_len = self._buffer("context_len", len(rows))
        np.add(starts, lengths, out=context_len)
        tables = self._block_tables(rows)
        row_of = np.repeat(np.arange(len(rows), dtype=np.int32), lengths)
        positions = self._buffer("positions", num_tokens)
        np.add(np.arange(num_tokens, dtype=np.int32), (starts - query_start[:-1])[row_of], out=positions)
        slots = self._buffer("slots", num_tokens)
        blocks = tables[row_of, positions // self._block_size]
        np.add(blocks * self._block_size, positions % self._block_size, out=slots)
        logits_rows, layout = self._logits_rows(rows, query_start)
        arrays = (token_ids, positions, slots, query_start, context_len, tables, logits_rows)
        return Batch(*(torch.from_numpy(values) for values in arrays)), layout

    def _block_tables(self, rows: tuple[Row, ...]) -> IntArray:
        """[R, longest table], padded with 0."""
        flat = self._fill("blocks", [row.block_table for row in rows])
        lengths = np.fromiter((len(row.block_table) for row in rows), np.int32, len(rows))
        width = max(1, int(lengths.max(initial=0)))
        tables = self._buffer("tables", len(rows) * width).reshape(len(rows), width)
        tables.fill(0)
        tables[np.arange(width) < lengths[:, None]] = flat
        return tables

    def _logits_rows(self, rows: tuple[Row, ...], query_start: IntArray) -> tuple[IntArray, LogitsLayout]:
        """A row's prompt targets take its first positions, sampling its last one; they may share it."""
        wanted: list[int] = []
        sampled: list[int] = []
        first_target: list[int] = []
        for row, begin, end in zip(rows, query_start[:-1].tolist(), query_start[1:].tolist(), strict=True):
            num_targets = len(row.prompt_targets) if row.prompt_targets is not None else 0
            first_target.append(len(wanted))
            wanted.extend(range(begin, begin + num_targets))
            if row.sampling is None:
                sampled.append(-1)
                continue
            if begin + num_targets < end:
                wanted.append(end - 1)
            sampled.append(len(wanted) - 1)
        return np.array(wanted, np.int32), LogitsLayout(tuple(sampled), tuple(first_target))

    def _fill(self, name: str, parts: list[object]) -> IntArray:
        """The sequences of ints one after the other; `array` takes lists faster than numpy does."""
        flat = array("i")
        for part in parts:
            flat.extend(part)  # type: ignore[arg-type]
        values = self._buffer(name, len(flat))
        values[:] = np.frombuffer(flat, np.int32) if flat else 0
        return values

    def _buffer(self, name: str, size: int) -> IntArray:
        """A view of `size` on the kept buffer of this name."""
        kept = self._buffers.get(name)
        if kept is None or kept.size < size:
            kept = np.zeros(max(64, 2 * size), np.int32)
            self._buffers[name] = kept
        return kept[:size]
