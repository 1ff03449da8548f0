"""`ModelRunner`: StepPlan -> StepResult. Builds inputs, runs the compiled forward, samples.

Given a backend, a loaded model and the cache; knows no block moves (cache_engine.py) and no scheduling.
"""

import torch

from octavo_kernels.backend import Backend
from octavo_kernels.ops import KVCache
from octavo_runtime.engine.plan import RowResult, StepPlan, StepResult
from octavo_runtime.model.registry import Model
from octavo_runtime.worker.inputs import InputBuilder
from octavo_runtime.worker.sampler import Sampler


class ModelRunner:
    """One model on one cache."""

    def __init__(self, backend: Backend, model: Model, cache: KVCache, vocab_size: int) -> None:
        self._inputs = InputBuilder(cache.shape.block_size)
        self._step = backend.compile(model.forward, cache, vocab_size)
        self._sampler = Sampler(backend)

    def run(self, plan: StepPlan) -> StepResult:
        """Computes every row's tokens into the cache and draws what its sampling asks for."""
        if not plan.rows:
            return StepResult(())
        batch, layout = self._inputs.build(plan)
        with torch.inference_mode():  # around both: logits made inside it may be changed only inside it
            logits = self._step(batch)
            if not logits.shape[0]:
                return StepResult((RowResult(),) * len(plan.rows))
            return StepResult(self._sampler.sample(logits, plan.rows, layout))
