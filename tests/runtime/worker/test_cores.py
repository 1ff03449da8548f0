"""Threads follow the container's quota where it is less than the machine."""

from pathlib import Path

import pytest

from octavo_runtime.worker.cores import usable_cores


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.parametrize(
    ("written", "cores"),
    [
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),  # 1.5 cores
        ("10000 100000\n", 1),  # a tenth of one
        ("3000000 100000\n", 8),  # more than there are
        ("max 100000\n", 8),
        ("", 8),
        ("broken\n", 8),
        ("100000 0\n", 8),
    ],
)
def test_quota_of_version_2(tmp_path: Path, written: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(written)
    assert usable_cores(tmp_path) == cores


@pytest.mark.parametrize(("quota", "cores"), [("250000\n", 3), ("-1\n", 8), ("0\n", 8)])
def test_quota_of_version_1(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota)
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores(tmp_path) == cores


def test_all_cores_without_control_groups(tmp_path: Path) -> None:
    assert usable_cores(tmp_path / "none") == 8
