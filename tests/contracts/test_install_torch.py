"""Libraries linked against GPU libraries that are not there load once the stand-ins are written; see scripts/install_torch.py."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "install_torch.py"

pytestmark = pytest.mark.skipif(not (shutil.which("cc") and shutil.which("readelf")), reason="needs a C compiler")


@pytest.fixture(scope="module")
def install_torch() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install_torch", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_library(folder: Path, name: str, source: str, *flags: str) -> Path:
    path, code = folder / name, folder / f"{name}.c"
    code.write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, code, f"-Wl,-soname,{name}", *flags], check=True)
    code.unlink()
    return path


@pytest.fixture
def orphan(tmp_path: Path) -> Path:
    """A library that calls two others, with and without symbol versions, after those have been taken away."""
    script = tmp_path / "versions.map"
    script.write_text("libcudart.so.13 { global: *; };\n")
    versioned = compile_library(
        tmp_path, "libcudart.so.13", "int cudaThing(void) { return 0; }", f"-Wl,--version-script={script}"
    )
    plain = compile_library(tmp_path, "libnccl.so.2", "int ncclThing(void) { return 0; }")
    calls = "int cudaThing(void); int ncclThing(void); int both(void) { return cudaThing() + ncclThing(); }"
    library = compile_library(tmp_path, "libcaller.so", calls, str(versioned), str(plain), "-Wl,-rpath,$ORIGIN")
    for gone in (versioned, plain, script):
        gone.unlink()
    return library


def call_in_a_fresh_process(library: Path) -> "subprocess.CompletedProcess[str]":
    """In this one, torch may have loaded libraries of the same names."""
    program = f"import ctypes; print(ctypes.CDLL({str(library)!r}).both(), end='')"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_a_library_loads_and_its_calls_answer_that_there_is_no_device(install_torch: ModuleType, orphan: Path) -> None:
    assert re.search(r"libcudart\.so\.13|libnccl\.so\.2", call_in_a_fresh_process(orphan).stderr)
    install_torch.stub_gpu_libraries(orphan.parent)
    assert {path.name for path in orphan.parent.iterdir()} == {"libcaller.so", "libcudart.so.13", "libnccl.so.2"}
    assert call_in_a_fresh_process(orphan).stdout == str(2 * install_torch.NO_DEVICE)


def test_libraries_of_the_system_are_left_alone(install_torch: ModuleType, tmp_path: Path) -> None:
    compile_library(tmp_path, "libplain.so", "int one(void) { return 1; }", "-lm", "-Wl,--no-as-needed", "-lm")
    install_torch.stub_gpu_libraries(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["libplain.so"]
