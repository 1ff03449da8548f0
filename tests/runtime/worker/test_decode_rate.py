"""The rate of the widest batch that a start has time for."""

from octavo_runtime.engine.plan import StepPlan, StepResult
from octavo_runtime.worker.decode_rate import decode_rate


class Device:
    """A step takes `fixed` seconds and `per_row` for each row."""

    def __init__(self, fixed: float, per_row: float) -> None:
        self.now = 0.0
        self._fixed, self._per_row = fixed, per_row
        self.widths: list[int] = []

    def execute(self, plan: StepPlan) -> StepResult:
        assert len({row.block_table[0] for row in plan.rows}) == len(plan.rows)
        self.widths.append(len(plan.rows))
        self.now += self._fixed + self._per_row * len(plan.rows)
        return StepResult(rows=())

    def rate(self, most_rows: int) -> float | None:
        return decode_rate(self.execute, most_rows, lambda: self.now)


def test_a_quick_device_is_tried_at_its_full_width() -> None:
    device = Device(0.001, 0.0001)
    rate = device.rate(100)
    assert device.widths == [1, 2, 4, 8, 16, 32, 64, 100]
    assert rate is not None
    assert 9000 < rate < 9200


def test_a_slow_device_does_not_hold_the_start() -> None:
    device = Device(0.3, 0.05)
    assert device.rate(256) is not None
    assert device.now < 2


def test_the_narrowest_batch_is_always_tried() -> None:
    device = Device(60, 0)
    assert device.rate(256) == 1 / 60
    assert device.widths == [1]


def test_a_clock_that_stands_gives_no_rate() -> None:
    assert Device(0, 0).rate(4) is None
