"""Builds the CPU kernels' shared library, `octavo_kernels/cpu/_native.so`.

Runs as hatchling's build hook when a wheel or an editable install is made, and as `python kernels/build_native.py` for
developers. Every kernel file is compiled once per instruction set; the library picks one when it is loaded, so the wheel
runs on any x86-64 machine. Without a compiler it says so and the package installs without: torch then does the work.
"""

import argparse
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import environ
from pathlib import Path
from typing import Any

CPU_FOLDER = Path(__file__).resolve().parent / "octavo_kernels" / "cpu"
SOURCE_FOLDER = CPU_FOLDER / "src"
LIBRARY = CPU_FOLDER / "_native.so"
OBJECT_FOLDER = Path(__file__).resolve().parent.parent / "build" / "native"

WARNINGS = "-Wall -Wextra -Wno-maybe-uninitialized"  # g++ 12's own AVX-512 headers set the last one off
COMMON_FLAGS = f"-std=c++17 -O3 -fPIC -fvisibility=hidden -fno-math-errno -fno-trapping-math -pthread {WARNINGS}"
LINK_FLAGS = "-shared -pthread -static-libstdc++ -static-libgcc -Wl,--no-undefined -Wl,--exclude-libs,ALL -Wl,-s"
AVX2_FLAGS = "-mavx2 -mfma -mf16c"
AVX512_FLAGS = f"{AVX2_FLAGS} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512"


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """The files compiled for one instruction set, with its flags; `macro` tells `dispatch.cpp` that it is there."""

    name: str
    flags: str
    sources: tuple[str, ...]
    macro: str


PLAIN_SOURCES = ("api.cpp", "dispatch.cpp", "pack.cpp", "program.cpp", "thread_pool.cpp")
BF16_SOURCES = ("linear_bf16.cpp",)
AMX_SOURCES = ("linear_amx.cpp",)
KERNEL_SOURCES = tuple(
    sorted({path.name for path in SOURCE_FOLDER.glob("*.cpp")} - {*PLAIN_SOURCES, *BF16_SOURCES, *AMX_SOURCES})
)
INSTRUCTION_SETS = (
    InstructionSet("avx2", AVX2_FLAGS, KERNEL_SOURCES, "OCTAVO_HAVE_AVX2"),
    InstructionSet("avx512", AVX512_FLAGS, KERNEL_SOURCES, "OCTAVO_HAVE_AVX512"),
    InstructionSet("avx512_bf16", f"{AVX512_FLAGS} -mavx512bf16", BF16_SOURCES, "OCTAVO_HAVE_AVX512_BF16"),
    InstructionSet("amx", f"{AVX512_FLAGS} -mavx512bf16 -mamx-tile -mamx-bf16", AMX_SOURCES, "OCTAVO_HAVE_AMX"),
)


class NativeBuildError(Exception):
    """The library could not be built; the message is the compiler's."""


def find_compiler() -> list[str] | None:
    """$CXX, or the first of g++, c++ and clang++ on the path; None when it is not there."""
    if chosen := shlex.split(environ.get("CXX", "")):
        return chosen if shutil.which(chosen[0]) else None
    return next(([path] for name in ("g++", "c++", "clang++") if (path := shutil.which(name))), None)


def accepts(compiler: list[str], flags: str) -> bool:
    """Whether the compiler knows every flag."""
    probe = [*compiler, *shlex.split(flags), "-x", "c++", "-fsyntax-only", "-"]
    return subprocess.run(probe, input="", text=True, capture_output=True, check=False).returncode == 0


def compile_jobs(compiler: list[str]) -> Iterator[tuple[list[str], Path, Path]]:
    """(command without output, source, object) of every object file of the library."""
    usable = [isa for isa in INSTRUCTION_SETS if accepts(compiler, isa.flags)]
    base = [*compiler, *shlex.split(COMMON_FLAGS)]
    macros = [f"-D{isa.macro}" for isa in usable]
    for name in PLAIN_SOURCES:
        yield [*base, *macros], SOURCE_FOLDER / name, OBJECT_FOLDER / f"{Path(name).stem}.o"
    for isa in usable:
        command = [*base, *shlex.split(isa.flags), f"-DOCTAVO_ISA_NAMESPACE={isa.name}"]
        for name in isa.sources:
            yield command, SOURCE_FOLDER / name, OBJECT_FOLDER / f"{Path(name).stem}.{isa.name}.o"


def run_compiler(command: list[str]) -> None:
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode:
        raise NativeBuildError(f"{shlex.join(command)}\n{done.stderr}")
    if done.stderr:
        sys.stderr.write(done.stderr)


def build(compiler: list[str], *, force: bool = False) -> Path:
    """Compiles what is older than its source or any header, and links; returns the library's path.

    :raises NativeBuildError: with the failing command and the compiler's words
    """
    OBJECT_FOLDER.mkdir(parents=True, exist_ok=True)
    newest_header = max(path.stat().st_mtime for path in [*SOURCE_FOLDER.glob("*.h"), Path(__file__)])
    jobs = list(compile_jobs(compiler))
    stale = [
        [*command, "-c", str(source), "-o", str(target)]
        for command, source, target in jobs
        if force or not target.exists() or target.stat().st_mtime < max(newest_header, source.stat().st_mtime)
    ]
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(run_compiler, stale))
    if stale or not LIBRARY.exists():
        fresh = LIBRARY.with_suffix(".so.new")  # renamed into place: a running process keeps the file it has mapped
        run_compiler([*compiler, *(str(target) for _, _, target in jobs), "-o", str(fresh), *shlex.split(LINK_FLAGS)])
        fresh.replace(LIBRARY)
    return LIBRARY


def build_or_explain() -> Path | None:
    """The library's path, or None after one line that says why there is none."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        reason = f"they are for x86-64 Linux and this is {platform.machine()} {sys.platform}"
    elif (compiler := find_compiler()) is None:
        reason = "no C++ compiler was found (install g++, or set CXX to one)"
    else:
        try:
            return build(compiler)
        except NativeBuildError as error:
            reason = f"the compiler failed: {error}"
    sys.stderr.write(f"octavo: the native CPU kernels are left out, torch is used instead: {reason}\n")
    return None


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:
    pass
else:

    class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
        """Builds the library into the source tree and takes it into the wheel, which is then tagged for this platform."""

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
            if self.target_name != "wheel" or build_or_explain() is None:
                return
            build_data["artifacts"].append("kernels/octavo_kernels/cpu/_native.so")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def main() -> None:
    """For developers: build, and fail loudly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--force", action="store_true", help="compile every file again")
    options = parser.parse_args()
    compiler = find_compiler()
    if compiler is None:
        sys.exit("octavo: no C++ compiler was found: install g++, or set CXX to one")
    try:
        build(compiler, force=options.force)
    except NativeBuildError as error:
        sys.exit(f"octavo: {error}")


if __name__ == "__main__":
    main()
