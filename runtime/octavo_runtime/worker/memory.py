"""Memory that this process may still take: the machine's, or its container's if that is less. Linux only."""

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
NO_LIMIT = 1 << 60  # version 1 has no word for it, but a number near 2**63


def available_memory(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> int:
    """Bytes; caches that the kernel can drop count as available."""
    fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
    machine = int(fields["MemAvailable"].split()[0]) * 1024
    container = _container_memory(cgroup)
    return machine if container is None else min(machine, container)


def _container_memory(cgroup: Path) -> int | None:
    """What is left below the limit of the control group; None without a limit."""
    for folder, limit, used, dropped in (
        (cgroup, "memory.max", "memory.current", "inactive_file"),
        (cgroup / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),  # version 1
    ):
        try:
            most = int((folder / limit).read_text())  # "max" is no number
            taken = int((folder / used).read_text())
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):
            continue
        if most < NO_LIMIT:
            return max(0, most - taken + int(stat.get(dropped, 0)))
    return None
