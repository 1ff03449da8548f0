import subprocess
import sys
from pathlib import Path

from gguf.constants import GGMLQuantizationType

from octavo_runtime.model.config import Architecture
from octavo_runtime.model.config_reader import read_model_config
from octavo_runtime.testing import build_tiny_model, write_tiny_gguf


def test_a_folder_and_a_gguf_file_of_one_model_have_the_same_shape(tmp_path: Path) -> None:
    model = build_tiny_model(Architecture.QWEN3)
    model.save_pretrained(tmp_path)
    path = write_tiny_gguf(tmp_path / "tiny.GGUF", model, GGMLQuantizationType.F16)
    from_folder, from_file = read_model_config(tmp_path), read_model_config(path)
    assert (from_folder.num_layers, from_folder.qkv_size) == (from_file.num_layers, from_file.qkv_size)


def test_a_config_is_read_without_torch() -> None:
    code = (
        "import sys, octavo_runtime.model.config_reader, octavo_runtime.worker.config; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
