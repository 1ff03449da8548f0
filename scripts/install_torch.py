"""Installs torch into a folder of its own, for the serving image.

    install_torch.py --device cuda|cpu --target FOLDER [REQUIREMENT]

The package index has only the build for CUDA, with several gigabytes of libraries that a CPU never calls. `--device cpu` leaves
them out and puts empty libraries with the same names and symbols in their place, so that torch still loads; every function in
them answers "no device". That needs a C compiler and binutils while the image is built, not afterwards.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

NO_DEVICE = 100  # cudaErrorNoDevice
# What only a GPU needs, by the beginning of the package's name.
GPU_PACKAGES = ("nvidia", "cuda", "triton")
GPU_LIBRARIES = re.compile(r"^lib(cu|nccl|nvrtc|nvshmem|nvJitLink|nvToolsExt|cupti)")
GPU_SYMBOLS = re.compile(r"^(_*cu|nccl|nv)")
SYMBOL = re.compile(r"\b(?:GLOBAL|WEAK)\s+DEFAULT\s+UND\s+([\w.$]+)(?:@(\S+))?")


def pip_install(target: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), *arguments]
    subprocess.run(command, check=True)


def requirements_without_gpu(torch: Distribution) -> Iterator[str]:
    """What torch asks for on this platform, less the GPU's libraries."""
    for requirement in torch.requires or []:
        wanted, _, marker = requirement.partition(";")
        if "extra ==" not in marker and not wanted.strip().startswith(GPU_PACKAGES):
            yield requirement


def readelf(option: str, library: Path) -> str:
    command = ["readelf", "--wide", option, str(library)]
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def missing_libraries(libraries: list[Path]) -> set[str]:
    """Names of the GPU libraries that the given ones want loaded."""
    there = {library.name for library in libraries}
    wanted = {
        name
        for library in libraries
        for name in re.findall(r"Shared library: \[(.+?)\]", readelf("--dynamic", library))
    }
    return {name for name in wanted - there if GPU_LIBRARIES.match(name)}


def wanted_versions(libraries: list[Path]) -> dict[str, set[str]]:
    """The versions of symbols that are wanted of each library, by its name."""
    versions: dict[str, set[str]] = defaultdict(set)
    for library in libraries:
        of = ""
        for line in readelf("--version-info", library).splitlines():
            if file := re.search(r"\bFile: (\S+)", line):
                of = file.group(1)
            elif of and (name := re.search(r"\bName: (\S+)", line)):
                versions[of].add(name.group(1))
    return versions


def wanted_symbols(libraries: list[Path]) -> dict[str, set[str]]:
    """Undefined symbols by version; those without a version under the empty name."""
    symbols: dict[str, set[str]] = defaultdict(set)
    for library in libraries:
        for name, version in SYMBOL.findall(readelf("--dyn-syms", library)):
            symbols[version].add(name)
    return symbols


def defined_symbols(libraries: list[Path]) -> set[str]:
    names: set[str] = set()
    for library in libraries:
        for line in readelf("--dyn-syms", library).splitlines():
            fields = line.split()
            if len(fields) >= 8 and fields[4] in {"GLOBAL", "WEAK"} and fields[6] != "UND":
                names.add(fields[7].split("@")[0])
    return names


def write_stub(folder: Path, name: str, symbols: Mapping[str, set[str]]) -> None:
    """A shared library `name` whose every symbol, given by version, is a function that answers NO_DEVICE."""
    functions = sorted(set().union(*symbols.values()))
    with tempfile.TemporaryDirectory() as scratch:
        source, script = Path(scratch, "stub.c"), Path(scratch, "stub.map")
        source.write_text("".join(f"int {function}(void) {{ return {NO_DEVICE}; }}\n" for function in functions))
        command = ["cc", "-shared", "-fPIC", "-O1", "-w", "-fno-builtin", "-nostdlib", f"-Wl,-soname,{name}", "-Wl,-s"]
        nodes = [
            f"{version} {{ {' '.join(f'{each};' for each in sorted(names))} }};\n"
            for version, names in symbols.items()
            if version
        ]
        if nodes:
            script.write_text("".join(nodes))
            command.append(f"-Wl,--version-script={script}")
        subprocess.run([*command, "-o", str(folder / name), str(source)], check=True)


def stub_gpu_libraries(folder: Path) -> None:
    """Give the libraries of `folder` (torch/lib) what they need to be loaded."""
    libraries = sorted(folder.glob("*.so*"))
    symbols, versions = wanted_symbols(libraries), wanted_versions(libraries)
    # Nobody says which library a symbol without a version belongs to, and the loader asks all that are loaded: every stub
    # that has no versions of its own gets all of them.
    loose = {name for name in symbols[""] - defined_symbols(libraries) if GPU_SYMBOLS.match(name)}
    for name in missing_libraries(libraries):
        own = {version: symbols[version] for version in sorted(versions[name])}
        write_stub(folder, name, own or {"": loose})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("requirement", nargs="?", default="torch")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--target", type=Path, required=True)
    options = parser.parse_args()
    if options.device == "cuda":
        pip_install(options.target, options.requirement)
        return
    pip_install(options.target, "--no-deps", options.requirement)
    torch = PathDistribution(next(options.target.glob("torch-*.dist-info")))
    pip_install(options.target, *requirements_without_gpu(torch))
    stub_gpu_libraries(options.target / "torch" / "lib")


if __name__ == "__main__":
    main()
