"""How many tokens a second a full batch of short sequences decodes, measured once at start: a replica's capacity.

An upper bound: longer contexts take longer. Given the worker's `execute`, before anybody owns a block.
"""

import time
from collections.abc import Callable

from octavo_runtime.engine.plan import Row, RowSampling, StepPlan, StepResult
from octavo_runtime.engine.sampling_params import SamplingParams

GREEDY = RowSampling(SamplingParams(temperature=0), (0.0,), (0, 0), (), num_logprobs=0)

_PLAIN = RowSampling(SamplingParams(temperature=0), (0.0,), (0,), ())
_MOST_SECONDS = 2.0  # that a start may take longer for it
_MOST_ROWS = 256


def decode_rate(
    execute: Callable[[StepPlan], StepResult], most_rows: int, clock: Callable[[], float] = time.perf_counter
) -> float | None:
    """Tokens per second of the widest batch that was tried; None when the clock saw no time pass.

    The batch is doubled as long as the next step is likely to stay within the time that is left.
    """
    rows, rate, began = 1, None, clock()
    while True:
        plan = StepPlan(tuple(Row(place, [0], 0, [place], _PLAIN) for place in range(rows)))
        start = clock()
        execute(plan)
        seconds = clock() - start
        rate = rows / seconds if seconds > 0 else rate
        if rows >= min(most_rows, _MOST_ROWS) or clock() - began + 2 * seconds > _MOST_SECONDS:
            return rate
        rows = min(2 * rows, most_rows, _MOST_ROWS)
