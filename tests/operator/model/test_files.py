import hashlib
import subprocess
from pathlib import Path

from octavo_operator.model.files import manifest_digest, wanted

PATHS = (
    "config.json",
    "model.safetensors",
    "README.md",
    ".cache/x.json",
    ".hidden.json",
    "tokenizer.model",
    "pytorch_model.bin",
    "onnx/model.json",
)


def test_weights_config_and_tokenizer_are_wanted_and_nothing_else() -> None:
    assert wanted(PATHS, (), ()) == ("config.json", "model.safetensors", "onnx/model.json", "tokenizer.model")


def test_ignored_files_and_folders_are_left_out() -> None:
    assert wanted(PATHS, (), ("onnx/", "tokenizer.*")) == ("config.json", "model.safetensors")


def test_allowed_patterns_replace_the_usual_ones() -> None:
    assert wanted(PATHS, ("*.bin", "config.json"), ()) == ("config.json", "pytorch_model.bin")


def test_patterns_mind_upper_and_lower_case() -> None:
    assert wanted(("a.GGUF", "a.gguf"), ("*.gguf",), ()) == ("a.gguf",)


def test_the_digest_does_not_depend_on_the_order_of_files() -> None:
    pairs = [("b", "11"), ("a", "22")]
    assert manifest_digest(pairs) == manifest_digest(reversed(pairs))
    expected = hashlib.sha256(b"11  b\n22  a\n").hexdigest()
    assert manifest_digest(pairs) == f"sha256:{expected}"


def test_the_digest_is_what_coreutils_compute(tmp_path: Path) -> None:
    for name in ("model.safetensors", "Config.json", "tokenizer.json"):
        (tmp_path / name).write_text(name * 3)
    shell = "sha256sum * | LC_ALL=C sort | sha256sum"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=True)
    pairs = [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in tmp_path.iterdir()]
    assert manifest_digest(pairs) == f"sha256:{done.stdout.split()[0]}"
