"""Every module has a test of its own in the same place below tests/, and no file outgrows a reader."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "operator": ROOT / "operator" / "octavo_operator",
    "runtime": ROOT / "runtime" / "octavo_runtime",
    "kernels": ROOT / "kernels" / "octavo_kernels",
}
TESTED_ELSEWHERE = {
    "kernels/backend_name.py": "an enum; test_backend.py selects by it",
    "kernels/cpu/backend.py": "test_program.py and tests/runtime/model run every op through it",
    "kernels/cpu/packed_linear.py": "test_native_linear.py packs and multiplies with it",
    "kernels/cpu/single_op.py": "what test_attention.py and test_sample.py call the native ops through",
    "kernels/ops.py": "protocols and frozen values; every backend's test uses them",
    "kernels/torch_cpu_attention.py": "test_torch_cpu_backend.py compares it with the reference",
    "kernels/torch_cpu_sampling.py": "test_sampling.py compares every backend with the reference",
    "runtime/engine/config.py": "frozen values; the scheduler's tests set them",
    "runtime/engine/messages.py": "typed messages without behaviour; test_channel.py sends them",
    "runtime/engine/plan.py": "frozen values; the scheduler makes and the worker reads them",
    "runtime/testing.py": "the tiny models of the tests in tests/runtime/model",
    "runtime/worker/config.py": "frozen values; test_settings.py makes and test_worker.py uses them",
}
MOST_LINES = 400
SUFFIXES = {".py", ".cpp", ".h", ".sh"}
SOURCE_FOLDERS = ("operator", "runtime", "kernels", "benchmarks", "scripts", "tests")


def modules() -> dict[str, Path]:
    """`runtime/engine/plan.py` -> where its test belongs."""
    found = {}
    for name, package in PACKAGES.items():
        for path in package.rglob("*.py"):
            if path.name != "__init__.py":
                place = path.relative_to(package)
                found[f"{name}/{place}"] = ROOT / "tests" / name / place.parent / f"test_{place.name}"
    return found


def test_every_module_has_its_test_module_in_the_same_place() -> None:
    missing = [name for name, test in modules().items() if not test.exists() and name not in TESTED_ELSEWHERE]
    assert not missing


def test_exceptions_are_modules_without_a_test_of_their_own() -> None:
    found = modules()
    assert not [name for name in TESTED_ELSEWHERE if name not in found or found[name].exists()]


@pytest.mark.parametrize("folder", SOURCE_FOLDERS)
def test_no_source_file_is_longer_than_a_reader_stands(folder: str) -> None:
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES and ".venv" not in path.parts]
    long = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    assert not {name: lines for name, lines in long.items() if lines > MOST_LINES}


def test_no_package_of_the_runtime_imports_upwards_into_text() -> None:
    """What both processes need lies at the top: `hub.py` and `gguf_header.py` know no package below them."""
    for name in ("hub.py", "gguf_header.py", "hub_download.py", "errors.py"):
        text = (PACKAGES["runtime"] / name).read_text()
        packages = ("text", "model", "server", "worker", "engine", "cli")
        assert not [package for package in packages if f"octavo_runtime.{package}" in text], name
