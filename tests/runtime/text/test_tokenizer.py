"""The tokenizer of a GGUF file equals transformers' own, and every id has its bytes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo_runtime.errors import InvalidRequestError, StartCause, StartError
from octavo_runtime.hub import ModelKind, ModelSource
from octavo_runtime.text.tokenizer import Tokenizer


def folder_source(folder: Path) -> ModelSource:
    return ModelSource("tiny", folder, ModelKind.SAFETENSORS, {}, {})


@pytest.fixture
def sentencepiece_folder(tmp_path: Path) -> Path:
    """A Llama-2-like vocabulary: U+2581 for spaces, byte fallback, BOS in front."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "h", "i", "▁h", "▁hi", "n"]
    model = tokenizers.models.BPE(
        {word: i for i, word in enumerate(words)}, [("▁", "h"), ("▁h", "i")], unk_token="<unk>", byte_fallback=True
    )
    backend = tokenizers.Tokenizer(model)
    backend.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.Prepend("▁"), tokenizers.normalizers.Replace(" ", "▁")]
    )
    backend.decoder = tokenizers.decoders.Sequence(
        [
            tokenizers.decoders.Replace("▁", " "),
            tokenizers.decoders.ByteFallback(),
            tokenizers.decoders.Fuse(),
            tokenizers.decoders.Strip(" ", 1, 0),
        ]
    )
    backend.add_special_tokens(["<s>", "</s>"])
    backend.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    backend.save(str(tmp_path / "tokenizer.json"))
    config = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def test_special_tokens_of_the_embedded_model(tokenizer: Tokenizer) -> None:
    assert (tokenizer.vocab_size, tokenizer.bos_token_id, tokenizer.eos_token_id) == (49152, 1, 2)
    assert tokenizer.encode("<|im_start|>") == [1]
    assert tokenizer.decode([1, 28120, 2]) == tokenizer.decode([28120])
    assert tokenizer.special_tokens["eos_token"] == "<|im_end|>"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(alphabet=st.sampled_from("aZ 09\n.,'é日本語👋🏽🇫🇷\u0301"), max_size=40))
def test_text_survives_encoding_and_decoding(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=False) == text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(ids=st.lists(st.integers(0, 49151), max_size=12))
def test_decoding_equals_the_library(tokenizer: Tokenizer, ids: list[int]) -> None:
    assert tokenizer.decode(ids) == tokenizer._backend.decode(ids)


def test_token_text_shows_partial_characters_as_bytes(tokenizer: Tokenizer) -> None:
    texts = [tokenizer.token_text(token_id) for token_id in tokenizer.encode("é👋")]
    assert texts[0] == "é"
    assert texts[1].startswith("bytes:\\xf0")
    data = b"".join(tokenizer.token_bytes(token_id) for token_id in tokenizer.encode("é👋"))
    assert data.decode() == "é👋"


@pytest.mark.parametrize("token_id", [-1, 49152, 2**32, 10**30])
def test_id_without_a_token_has_no_bytes(tokenizer: Tokenizer, token_id: int) -> None:
    assert tokenizer.token_bytes(token_id) == b""
    assert tokenizer.token_string(token_id) == ""


def test_lone_surrogate_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(InvalidRequestError, match="lone surrogate"):
        tokenizer.encode("bad \ud800 text")


def test_conversion_of_a_gguf_file_is_kept(
    embedded: ModelSource, tokenizer: Tokenizer, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("converted again")

    monkeypatch.setattr("octavo_runtime.text.tokenizer_conversion._convert_in_child", refuse)
    again = Tokenizer.load(embedded, cache_dir)
    assert again.encode("a b") == tokenizer.encode("a b")


def test_sentencepiece_first_space_and_byte_fallback(sentencepiece_folder: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(folder_source(sentencepiece_folder), tmp_path)
    ids = tokenizer.encode("hi hi é")
    assert ids[0] == tokenizer.bos_token_id == 1
    assert tokenizer.decode(ids) == tokenizer._backend.decode(ids) == "hi hi é"
    assert tokenizer.token_text(ids[1]) == " hi"
    assert tokenizer.encode("hi", add_special_tokens=False) == ids[1:2]


def test_a_tokenizer_of_ones_own_is_taken_as_folder_or_file(
    embedded: ModelSource, sentencepiece_folder: Path, tmp_path: Path
) -> None:
    named = (sentencepiece_folder / "tokenizer.json").rename(sentencepiece_folder / "mine.json")
    assert Tokenizer.load(embedded, tmp_path, named).vocab_size < 1000
    named.rename(sentencepiece_folder / "tokenizer.json")
    assert Tokenizer.load(embedded, tmp_path, sentencepiece_folder).vocab_size < 1000


def test_a_gguf_file_may_be_the_tokenizer(
    embedded: ModelSource, sentencepiece_folder: Path, tokenizer: Tokenizer, cache_dir: Path
) -> None:
    taken = Tokenizer.load(folder_source(sentencepiece_folder), cache_dir, embedded.path)
    assert taken.vocab_size == tokenizer.vocab_size


@pytest.mark.parametrize("name", ["none", "none/tokenizer.json", "org/model"])
def test_a_tokenizer_that_does_not_exist_is_refused(embedded: ModelSource, tmp_path: Path, name: str) -> None:
    with pytest.raises(StartError, match=f"--tokenizer .*{name} does not exist") as caught:
        Tokenizer.load(embedded, tmp_path, tmp_path / name)
    assert caught.value.cause is StartCause.INVALID_SETTINGS


def test_decoder_of_another_kind_is_refused(tmp_path: Path) -> None:
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a"))
    backend.decoder = tokenizers.decoders.WordPiece()
    backend.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(StartError, match="WordPiece") as caught:
        Tokenizer.load(folder_source(tmp_path), tmp_path)
    assert caught.value.cause is StartCause.MODEL_UNSUPPORTED


def test_broken_tokenizer_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(StartError, match="download the model again") as caught:
        Tokenizer.load(folder_source(tmp_path), tmp_path)
    assert caught.value.cause is StartCause.MODEL_CORRUPT


def test_text_never_imports_torch() -> None:
    modules = "octavo_runtime.hub octavo_runtime.text.chat_template octavo_runtime.text.output_processor"
    code = f"import sys, {modules.replace(' ', ', ')}; sys.exit(bool({{'torch', 'transformers'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_special_tokens_may_be_objects(sentencepiece_folder: Path, tmp_path: Path) -> None:
    tokenizer: Any = Tokenizer.load(folder_source(sentencepiece_folder), tmp_path)
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<s>", "</s>")
