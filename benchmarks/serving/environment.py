"""The benchmark's one door to the environment of its process and to the machine under it.

Gives the cache folder (OCTAVO_CACHE, default ~/.cache/octavo), the environment that servers and installers are started
with, and the description of the processor that every result is kept with. Knows no server and no workload.
"""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

# From the poorest to the richest: the last one whose flags are all present names the machine's class.
FLAG_CLASSES = {
    "avx2": {"avx2", "fma"},
    "avx512": {"avx512f", "avx512bw", "avx512vl"},
    "avx512_vnni": {"avx512_vnni"},
    "avx512_bf16": {"avx512_bf16"},
    "amx": {"amx_bf16", "amx_tile"},
}


@dataclass(frozen=True, slots=True)
class Machine:
    """What a reader needs to know to compare two result files."""

    cpu: str
    flags_class: str
    flags: frozenset[str]
    cores: int
    memory_gib: int
    python: str

    def __str__(self) -> str:
        return f"{self.cpu}, {self.flags_class}, {self.cores} cores, {self.memory_gib} GiB, Python {self.python}"


def repository() -> Path:
    return Path(__file__).resolve().parents[2]


def cache_folder() -> Path:
    return Path(os.environ.get("OCTAVO_CACHE") or Path.home() / ".cache" / "octavo").resolve()


def child_environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """This environment without what would let our own checkout leak into another server's Python, plus `extra`."""
    ours = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONSAFEPATH"}
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    return inherited | {"PYTHONSAFEPATH": "1"} | (extra or {})


def load_average() -> float:
    """Runnable processes over the last minute: above the cores before a run, the figures are not to be trusted."""
    return round(os.getloadavg()[0], 2)


def describe_machine() -> Machine:
    fields = _processor_fields()
    flags = frozenset(fields.get("flags", fields.get("Features", "")).split())
    page_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(
        cpu=fields.get("model name", platform.machine()),
        flags_class=flags_class(flags),
        flags=flags,
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(page_bytes / 2**30),
        python=platform.python_version(),
    )


def flags_class(flags: frozenset[str]) -> str:
    return next((name for name, needed in reversed(FLAG_CLASSES.items()) if needed <= flags), "baseline")


def _processor_fields() -> dict[str, str]:
    """The first processor of /proc/cpuinfo; empty where that file does not exist."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    lines = path.read_text().split("\n\n")[0].splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
