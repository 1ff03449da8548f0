"""Makes a tokenizer.json for models that come without one: GGUF files and SentencePiece folders.

`transformers` does the conversion, in a process of its own, so that a server never holds it in memory. The result is
kept in the cache folder under the source's identity, so it happens once per model file.
"""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.gguf_header import read_gguf_header

_FORMAT = "1"  # part of the identity: raise it when the conversion gives something else
_HEAD_BYTES = 1 << 20
_LONG_ARRAYS = ("tokens", "scores", "token_type", "merges")
_NAMED_TOKENS = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
_WHOLE_WORDS_FIRST = ("llama3", "llama-v3", "llama-bpe", "tekken")  # a word that is a token is not built from merges


def converted_tokenizer(path: Path, cache_dir: Path) -> Path:
    """The folder with tokenizer.json and tokenizer_config.json made from `path`, a GGUF file or a model folder.

    Raises StartError(MODEL_UNSUPPORTED) when `transformers` cannot convert it.
    """
    wanted = cache_dir / "tokenizers" / _identity(path)
    if (wanted / "tokenizer.json").is_file():
        return wanted
    made = Path(tempfile.mkdtemp(prefix="octavo-tokenizer-"))
    _convert_in_child(path, made)
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(dir=wanted.parent))
        shutil.copytree(made, staged, dirs_exist_ok=True)
        staged.replace(wanted)
    except OSError:  # a read-only cache, or another process was first: this start uses its own copy
        return wanted if (wanted / "tokenizer.json").is_file() else made
    shutil.rmtree(made)
    return wanted


def _convert_in_child(path: Path, destination: Path) -> None:
    command = [sys.executable, "-m", "octavo_runtime.text.tokenizer_conversion", str(path), str(destination)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    if child.returncode != 0:
        lines = child.stderr.strip().splitlines() or ["no reason given"]
        if os.strerror(errno.ENOSPC) in lines[-1]:
            message = f"The disk of {destination} is full; make the volume larger."
            raise StartError(StartCause.DISK_FULL, message)
        message = f"{path} has no readable tokenizer ({lines[-1]}); give a folder with a tokenizer.json by --tokenizer."
        raise StartError(StartCause.MODEL_UNSUPPORTED, message)


def _identity(path: Path) -> str:
    """Name of the converted copy: changes when the file does, without reading all of it."""
    digest = hashlib.sha256(_FORMAT.encode())
    files = [path] if path.is_file() else sorted(path.glob("*token*")) + sorted(path.glob("*.json"))
    for file in files:
        status = file.stat()
        digest.update(f"{file.name}:{status.st_size}:{status.st_mtime_ns}:".encode())
        with file.open("rb") as content:
            digest.update(content.read(_HEAD_BYTES))
    return f"{path.stem}-{digest.hexdigest()[:16]}"


def _convert_gguf(path: Path, destination: Path) -> None:
    try:
        from transformers.integrations.gguf.gguf_tokenizer_mapping import convert_gguf_tokenizer
    except ImportError:  # transformers before 5.20: the whole way, with torch
        _convert_by_auto_tokenizer(destination, str(path.parent), gguf_file=path.name)
        return
    metadata = read_gguf_header(path, [f"tokenizer.ggml.{name}" for name in _LONG_ARRAYS]).metadata
    values: dict[str, Any] = {
        key.removeprefix("tokenizer.ggml."): value
        for key, value in metadata.items()
        if key.startswith("tokenizer.ggml.")
    }
    values["tokenizer_type"] = values.get("model")
    values["pre_tokenizer_type"] = values.get("pre")
    backend, _ = convert_gguf_tokenizer(str(metadata["general.architecture"]), values)
    tokens = values["tokens"]
    config: dict[str, Any] = {
        name: tokens[values[key]] for name, key in _NAMED_TOKENS.items() if values.get(key, len(tokens)) < len(tokens)
    }
    config["chat_template"] = metadata.get("tokenizer.chat_template")
    whole_words = values.get("pre") in _WHOLE_WORDS_FIRST
    if whole_words:
        backend.model.ignore_merges = True
    default_bos = whole_words or values.get("model") == "llama"
    backend.post_processor = _surround(
        backend,
        config.get("bos_token") if values.get("add_bos_token", default_bos) else None,
        config.get("eos_token") if values.get("add_eos_token", False) else None,
    )
    backend.save(str(destination / "tokenizer.json"))
    (destination / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def _surround(backend: Any, before: str | None, after: str | None) -> Any:
    """The post-processor that puts `before` and `after` around every encoded text."""
    from tokenizers.processors import TemplateProcessing

    template = " ".join([*([before] if before else []), "$A", *([after] if after else [])])
    tokens = [(token, backend.token_to_id(token)) for token in (before, after) if token]
    return TemplateProcessing(single=template, special_tokens=tokens)


def _convert_by_auto_tokenizer(destination: Path, folder: str, **options: Any) -> None:
    from transformers import AutoTokenizer

    AutoTokenizer.from_pretrained(folder, local_files_only=True, **options).save_pretrained(destination)


def _main(path: Path, destination: Path) -> None:
    if path.is_file():
        _convert_gguf(path, destination)
    else:
        _convert_by_auto_tokenizer(destination, str(path))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]))
