import pytest
import torch

from octavo_runtime.model.config import RopeConfig, RopeScaling
from octavo_runtime.model.rope import rope_frequencies, rope_table


def test_frequencies_fall_from_one_by_powers_of_theta() -> None:
    expected = torch.tensor([1.0, 100.0**-0.25, 100.0**-0.5, 100.0**-0.75])
    torch.testing.assert_close(rope_frequencies(RopeConfig(theta=100.0), 8), expected)


def test_linear_scaling_stretches_all() -> None:
    plain = rope_frequencies(RopeConfig(), 16)
    scaled = rope_frequencies(RopeConfig(scaling=RopeScaling.LINEAR, factor=4.0), 16)
    torch.testing.assert_close(scaled, plain / 4)


def test_llama3_scaling_keeps_fast_rotations_and_stretches_slow_ones() -> None:
    rope = RopeConfig(500000.0, RopeScaling.LLAMA3, 8.0, 1.0, 4.0, 8192)
    ratio = rope_frequencies(RopeConfig(500000.0), 128) / rope_frequencies(rope, 128)
    assert float(ratio[0]) == pytest.approx(1.0)
    assert float(ratio[-1]) == pytest.approx(8.0)
    assert bool((ratio.diff() >= -1e-5).all())


def test_the_table_holds_cosines_then_sines_of_every_position() -> None:
    table = rope_table(torch.tensor([1.0, 0.1]), 4)
    angles = torch.tensor([3.0, 0.3])
    torch.testing.assert_close(table[3], torch.cat([angles.cos(), angles.sin()]))
