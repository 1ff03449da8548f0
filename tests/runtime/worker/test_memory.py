from pathlib import Path

from octavo_runtime.worker.memory import available_memory

MEMINFO = "MemTotal:       8000000 kB\nMemAvailable:   4000000 kB\n"


def test_the_machine_counts_without_a_container_limit(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(MEMINFO)
    assert available_memory(tmp_path / "meminfo", tmp_path / "none") == 4_000_000 * 1024


def test_a_smaller_container_limit_counts_and_droppable_pages_are_free(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(MEMINFO)
    (tmp_path / "memory.max").write_text("1000000000\n")
    (tmp_path / "memory.current").write_text("600000000\n")
    (tmp_path / "memory.stat").write_text("anon 400000000\ninactive_file 200000000\n")
    assert available_memory(tmp_path / "meminfo", tmp_path) == 600_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory(tmp_path / "meminfo", tmp_path) == 4_000_000 * 1024


def test_version_1_control_groups_count_too(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(MEMINFO)
    group = tmp_path / "memory"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text("2000000000\n")
    (group / "memory.usage_in_bytes").write_text("700000000\n")
    (group / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 100000000\n")
    assert available_memory(tmp_path / "meminfo", tmp_path) == 1_400_000_000
    (group / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert available_memory(tmp_path / "meminfo", tmp_path) == 4_000_000 * 1024


def test_this_machine_has_some() -> None:
    assert available_memory() > 1 << 20
