import time

import torch

from octavo_runtime.engine.plan import Row, RowSampling, StepPlan
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.worker.inputs import InputBuilder

SAMPLING = RowSampling(SamplingParams(), (0.5,), [], [])


def test_a_mixed_batch_has_positions_slots_and_tables_per_row() -> None:
    plan = StepPlan(
        (
            Row(1, [7, 8, 9], 3, [5, 2], None),
            Row(2, [4], 8, [1, 3, 6], SAMPLING),
        )
    )
    batch, layout = InputBuilder(block_size=4).build(plan)
    assert batch.token_ids.tolist() == [7, 8, 9, 4]
    assert batch.positions.tolist() == [3, 4, 5, 8]
    assert batch.slots.tolist() == [5 * 4 + 3, 2 * 4, 2 * 4 + 1, 6 * 4]
    assert batch.query_start.tolist() == [0, 3, 4]
    assert batch.context_len.tolist() == [6, 9]
    assert batch.block_tables.tolist() == [[5, 2, 0], [1, 3, 6]]
    assert batch.logits_rows.tolist() == [3]
    assert layout.sampled == (-1, 0)
    assert all(values.dtype is torch.int32 and values.is_contiguous() for values in (batch.slots, batch.block_tables))


def test_prompt_targets_and_sampling_share_the_last_position_or_add_it() -> None:
    chunk = Row(1, [7, 8], 0, [0], None, prompt_targets=[8, 9])
    last = Row(2, [7, 8, 9], 0, [1], SAMPLING, prompt_targets=[8, 9])
    whole = Row(3, [7, 8], 0, [2], SAMPLING, prompt_targets=[8, 9])
    batch, layout = InputBuilder(block_size=4).build(StepPlan((chunk, last, whole)))
    assert batch.logits_rows.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert layout.first_target == (0, 2, 5)
    assert layout.sampled == (-1, 4, 6)


def test_a_smaller_batch_after_a_larger_one_sees_nothing_of_it() -> None:
    builder = InputBuilder(block_size=4)
    builder.build(StepPlan(tuple(Row(i, [i] * 9, 0, [9, 9, 9], SAMPLING) for i in range(8))))
    batch, _ = builder.build(StepPlan((Row(1, [3], 0, [2], SAMPLING), Row(2, [4], 4, [7, 8], SAMPLING))))
    assert batch.block_tables.tolist() == [[2, 0], [7, 8]]
    assert batch.query_start.tolist() == [0, 1, 2]


def test_256_decodes_of_100_blocks_take_a_few_milliseconds_at_most() -> None:
    builder = InputBuilder(block_size=16)
    tables = [list(range(i, i + 100)) for i in range(256)]
    plan = StepPlan(tuple(Row(i, [1], 1599, tables[i], SAMPLING) for i in range(256)))
    fastest = min(_seconds(builder, plan) for _ in range(10))
    assert fastest < 0.02  # 1.0 ms on a quiet machine


def _seconds(builder: InputBuilder, plan: StepPlan) -> float:
    begin = time.perf_counter()
    builder.build(plan)
    return time.perf_counter() - begin
