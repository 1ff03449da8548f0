from collections.abc import Callable
from typing import Any

import torch

from octavo_kernels.ops import CacheShape, Ops
from octavo_kernels.reference_backend import ReferenceBackend
from octavo_runtime.engine.plan import Row, RowResult, RowSampling, StepPlan
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.worker.model_runner import ModelRunner


class NextToken:
    """A model whose likeliest next token is the last one plus one."""

    def __init__(self, pack: Callable[..., Any]) -> None:
        self.table = pack(torch.eye(8).roll(1, dims=1), None)
        self.head = pack(torch.eye(8), None)

    def forward(self, ops: Ops[Any]) -> Any:
        return ops.linear(ops.logits_rows(ops.embedding(self.table)), self.head)


def make_runner() -> ModelRunner:
    backend = ReferenceBackend()
    cache = backend.allocate_kv_cache(CacheShape(1, 4, 8, 1, 4, torch.float32))
    return ModelRunner(backend, NextToken(backend.pack_linear), cache, vocab_size=8)


def test_rows_come_back_in_the_order_of_the_plan() -> None:
    sampling = RowSampling(SamplingParams(temperature=0), (0.0,), [], [])
    rows = (Row(1, [1, 2], 0, [0], sampling), Row(2, [3], 0, [1], None), Row(3, [5], 0, [2], sampling))
    result = make_runner().run(StepPlan(rows))
    assert [row.token_ids for row in result.rows] == [(3,), (), (6,)]


def test_logits_of_the_step_may_be_processed_in_place() -> None:
    sampling = RowSampling(SamplingParams(temperature=0), (0.0,), [], [], banned_token_ids=(3,))
    (row,) = make_runner().run(StepPlan((Row(1, [1, 2], 0, [0], sampling),))).rows
    assert row.token_ids != (3,)


def test_a_plan_without_rows_or_without_sampling_computes_no_tokens() -> None:
    runner = make_runner()
    assert runner.run(StepPlan(())).rows == ()
    assert runner.run(StepPlan((Row(1, [1, 2], 0, [0]),))).rows == (RowResult(),)
