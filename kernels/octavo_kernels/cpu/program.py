"""A recorded forward bound to a KV cache and to threads: one call of the native library a step."""

import torch

from octavo_kernels.cpu.native import Engine
from octavo_kernels.cpu.program_builder import Recording
from octavo_kernels.cpu.run_args import batch_struct, run_struct
from octavo_kernels.ops import Batch, KVCache


class Program:
    """Batch -> logits [L, vocab] float32, in memory that the next call overwrites.

    :raises ValueError: when the batch has tensors of another dtype or layout, or names what does not exist
    """

    def __init__(self, recording: Recording, engine: Engine, cache: KVCache, vocab_size: int) -> None:
        self._recording = recording
        self._engine = engine
        self._cache = cache
        self._vocab_size = vocab_size
        self._token_arena = torch.empty(0)
        self._logits_arena = torch.empty(0)
        self._output = torch.empty(0)
        self._x_bf16 = torch.empty(0, dtype=torch.bfloat16)
        self._args = run_struct(cache)

    def __call__(self, batch: Batch) -> torch.Tensor:
        num_tokens, num_logits = batch.token_ids.shape[0], batch.logits_rows.shape[0]
        self._reserve(num_tokens, num_logits)
        self._args.batch = batch_struct(batch)
        self._engine.run(self._recording.ops, self._args)
        return self._output[: num_logits * self._vocab_size].view(num_logits, self._vocab_size)

    def _reserve(self, num_tokens: int, num_logits: int) -> None:
        """Grows the arenas to this step's size; they never shrink."""
        rows = max(num_tokens, num_logits)
        padded = -(-rows // 16) * 16 * -(-self._recording.max_in_features // 32) * 32
        self._token_arena = _at_least(self._token_arena, num_tokens * self._recording.token_width)
        self._logits_arena = _at_least(self._logits_arena, num_logits * self._recording.logits_width)
        self._output = _at_least(self._output, num_logits * self._vocab_size)
        self._x_bf16 = _at_least(self._x_bf16, padded)
        self._args.token_arena = self._token_arena.data_ptr()
        self._args.logits_arena = self._logits_arena.data_ptr()
        self._args.output = self._output.data_ptr()
        self._args.x_bf16 = self._x_bf16.data_ptr()


def _at_least(memory: torch.Tensor, num_elements: int) -> torch.Tensor:
    if memory.numel() >= num_elements:
        return memory
    return torch.empty(num_elements + num_elements // 4, dtype=memory.dtype)
