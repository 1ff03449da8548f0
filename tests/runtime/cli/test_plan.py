"""Memory figures of the embedded model, from its header."""

import pytest

from octavo_runtime.cli.main import run
from octavo_runtime.cli.plan import size


def plan(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    assert run(["plan", "embedded", *arguments]) == 0
    return {line[:28].strip(): line[28:] for line in capsys.readouterr().out.splitlines()}


def test_figures_of_the_embedded_model(capsys: pytest.CaptureFixture[str]) -> None:
    rows = plan(capsys, "--memory", "16GiB")
    assert rows["model"] == "LlamaForCausalLM, 134.5 M parameters"
    assert rows["weights"] == "256.6 MiB as bfloat16"
    assert rows["cache per token"] == "22.5 KiB"  # 2 x 30 layers x 3 heads x 64 x 2 bytes
    assert rows["longest context"] == "8,192 tokens"
    assert rows["memory to use"] == "14.40 GiB of 16.00 GiB"


def test_float32_doubles_weights_and_cache(capsys: pytest.CaptureFixture[str]) -> None:
    rows = plan(capsys, "--memory", "16GiB", "--dtype", "float32")
    assert (rows["weights"], rows["cache per token"]) == ("513.1 MiB as float32", "45.0 KiB")


def test_context_that_does_not_fit_shows_the_longest_that_does(capsys: pytest.CaptureFixture[str]) -> None:
    rows = plan(capsys, "--kv-cache-memory-bytes", "90MiB")
    assert rows["longest context"] == "4,096 tokens (use it as --max-model-len)"
    assert rows["sequences at once"] == "1 of 4,096 tokens"


def test_model_that_does_not_fit_says_what_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(capsys, "--memory", "300MB")["fits"].startswith("no: ")


def test_sizes_for_people() -> None:
    assert [size(n) for n in (7, 1536, 3 << 20, 5 << 30)] == ["7 B", "1.5 KiB", "3.0 MiB", "5.00 GiB"]
