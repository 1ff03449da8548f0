from octavo_runtime.engine.plan import Row, RowSampling, StepPlan
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.engine.simulation import SimulatedExecutor, SimulatedModel

GREEDY = RowSampling(params=SamplingParams(temperature=0), uniforms=(0.0,), prompt_token_ids=[], output_token_ids=[])


def row(token_ids: list[int], start: int, table: list[int]) -> Row:
    return Row(sequence_id=1, token_ids=token_ids, start=start, block_table=table, sampling=GREEDY)


def first_token(executor: SimulatedExecutor, *rows: Row, **moves: tuple[tuple[int, int], ...]) -> int:
    return executor.execute(StepPlan(rows=rows, **moves)).rows[-1].token_ids[0]


def test_a_chunked_prompt_gives_the_token_of_the_whole_one() -> None:
    whole, chunked = SimulatedExecutor(2, 4), SimulatedExecutor(2, 4)
    expected = first_token(whole, row([1, 2, 3, 4, 5], 0, [0, 1, 2]))
    first_token(chunked, row([1, 2, 3], 0, [3, 1]))
    assert first_token(chunked, row([4, 5], 3, [3, 1, 0])) == expected
    assert expected == SimulatedModel().token(SimulatedModel().context([1, 2, 3, 4, 5]), 0.0)


def test_copies_and_swaps_carry_the_context() -> None:
    executor = SimulatedExecutor(2, 4, 2)
    first_token(executor, row([1, 2, 3], 0, [0, 1]))
    expected = first_token(SimulatedExecutor(2, 4), row([1, 2, 3, 4], 0, [0, 1]))
    assert first_token(executor, row([4], 3, [0, 2]), copy=((1, 2),)) == expected
    first_token(executor, row([9, 9], 0, [3]), swap_out=((0, 1), (1, 0)))
    first_token(executor, row([9, 9, 9, 9], 0, [0, 1]))
    assert first_token(executor, row([4], 3, [2, 3]), swap_in=((1, 2), (0, 3))) == expected


def test_a_wrong_block_changes_the_token() -> None:
    executor = SimulatedExecutor(2, 4)
    right = first_token(executor, row([1, 2, 3], 0, [0, 1]))
    first_token(executor, row([9, 8], 0, [2]))
    assert first_token(executor, row([3], 2, [2, 1])) != right


def test_equal_tokens_at_another_place_are_another_context() -> None:
    model = SimulatedModel()
    assert model.context([1, 1])[0] != model.context([1, 1])[1]
    assert model.context([2, 1])[1] != model.context([1, 1])[1]
