"""CPU cores that this process may use: those it may run on, or as many as its container's quota pays for. Linux only."""

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def usable_cores(cgroup: Path = CGROUP) -> int:
    """At least 1. A quota of 1.5 cores counts as 2: more threads would only wait for each other at every step."""
    cores = len(os.sched_getaffinity(0))
    quota = _quota_version_2(cgroup) or _quota_version_1(cgroup)
    if quota is None:
        return cores
    microseconds, period = quota
    return min(cores, -(-microseconds // period))


def _quota_version_2(cgroup: Path) -> tuple[int, int] | None:
    """(CPU time, period in which it may be used) of `cpu.max`: "150000 100000"; None without a limit ("max")."""
    return _positive(_words(cgroup / "cpu.max"))


def _quota_version_1(cgroup: Path) -> tuple[int, int] | None:
    """The same of version 1 control groups; a quota of -1 is no limit."""
    folder = cgroup / "cpu"
    return _positive(_words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us"))


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _positive(words: list[str]) -> tuple[int, int] | None:
    if len(words) != 2 or not all(word.isdecimal() and int(word) > 0 for word in words):
        return None
    return int(words[0]), int(words[1])
