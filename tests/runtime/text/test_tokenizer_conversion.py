"""Tokenizers of GGUF files and SentencePiece folders become tokenizer.json, once."""

import json
import subprocess
import sys
from pathlib import Path

import gguf
import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.hub import ModelSource, resolve_model
from octavo_runtime.text import tokenizer_conversion
from octavo_runtime.text.tokenizer import Tokenizer
from octavo_runtime.text.tokenizer_conversion import converted_tokenizer

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def write_gguf(path: Path, model: str, **options: object) -> ModelSource:
    """A GGUF file that has a tokenizer and nothing else."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    for name, value in options.items():
        getattr(writer, f"add_{name}")(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return resolve_model(str(path))


@pytest.fixture
def sentencepiece(tmp_path: Path) -> ModelSource:
    words = ["▁", "h", "i", "▁h", "▁hi"]
    tokens = ["<unk>", "<s>", "</s>", *BYTES, *words]
    return write_gguf(
        tmp_path / "spm.gguf",
        "llama",
        token_list=tokens,
        token_scores=[0.0] * 259 + [-float(rank) for rank in (5, 4, 3, 2, 1)],
        token_types=[UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * 5],
        bos_token_id=1,
        eos_token_id=2,
    )


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spares each test a process that imports transformers."""
    monkeypatch.setattr(tokenizer_conversion, "_convert_in_child", tokenizer_conversion._main)


@pytest.mark.usefixtures("in_process")
def test_sentencepiece_vocabulary_begins_with_bos_and_falls_back_to_bytes(
    sentencepiece: ModelSource, tmp_path: Path
) -> None:
    tokenizer = Tokenizer.load(sentencepiece, tmp_path / "cache")
    ids = tokenizer.encode("hi é")
    assert [tokenizer.token_string(token_id) for token_id in ids] == ["<s>", "▁hi", "▁", "<0xC3>", "<0xA9>"]
    assert tokenizer.decode(ids) == "hi é"
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<s>", "</s>")


@pytest.mark.usefixtures("in_process")
def test_llama3_vocabulary_begins_with_bos_and_takes_whole_words(tmp_path: Path) -> None:
    source = write_gguf(
        tmp_path / "bpe.gguf",
        "gpt2",
        tokenizer_pre="llama-bpe",
        token_list=["h", "i", "hi", "<|begin|>"],
        token_types=[NORMAL, NORMAL, NORMAL, CONTROL],
        token_merges=["h i"],
        bos_token_id=3,
        chat_template="{{ messages }}",
    )
    tokenizer = Tokenizer.load(source, tmp_path / "cache")
    assert tokenizer.encode("hi") == [3, 2]
    assert tokenizer.encode("hi", add_special_tokens=False) == [2]
    assert tokenizer.chat_template == "{{ messages }}"
    (kept,) = (tmp_path / "cache" / "tokenizers").iterdir()
    assert json.loads((kept / "tokenizer.json").read_text())["model"]["ignore_merges"] is True


@pytest.mark.usefixtures("in_process")
def test_file_that_changed_is_converted_again(sentencepiece: ModelSource, tmp_path: Path) -> None:
    first = converted_tokenizer(sentencepiece.path, tmp_path / "cache")
    with sentencepiece.path.open("ab") as file:
        file.write(b"\0")
    assert converted_tokenizer(sentencepiece.path, tmp_path / "cache") != first


@pytest.mark.usefixtures("in_process")
def test_cache_that_cannot_be_written_is_no_obstacle(sentencepiece: ModelSource, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    folder = converted_tokenizer(sentencepiece.path, tmp_path / "cache")
    assert (folder / "tokenizer.json").is_file()


def test_unknown_vocabulary_is_one_sentence(tmp_path: Path) -> None:
    source = write_gguf(tmp_path / "odd.gguf", "odd", token_list=["a"])
    with pytest.raises(StartError, match="no readable tokenizer") as caught:
        converted_tokenizer(source.path, tmp_path / "cache")
    assert caught.value.cause is StartCause.MODEL_UNSUPPORTED
    assert "\n" not in str(caught.value)


def test_conversion_needs_no_torch(embedded: ModelSource, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from octavo_runtime.text import tokenizer_conversion as t;"
        "t._main(Path(sys.argv[1]), Path(sys.argv[2])); sys.exit('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(embedded.path), str(tmp_path)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
