"""What this build refuses by name, and what it warns about."""

from typing import Any

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.settings import Settings


def settings(**values: Any) -> Settings:
    return Settings.from_values({"model": "m", **values})


@pytest.mark.parametrize(
    ("values", "cause", "said"),
    [
        (
            {"device": "cuda"},
            StartCause.DEVICE_UNAVAILABLE,
            "this build serves on the CPU only; set engine.device: cpu",
        ),
        ({"tensor_parallel_size": 2}, StartCause.PARALLELISM_UNSUPPORTED, "--tensor-parallel-size 2"),
        ({"pipeline_parallel_size": 4}, StartCause.PARALLELISM_UNSUPPORTED, "--pipeline-parallel-size 4"),
        ({"quantization": "awq"}, StartCause.QUANTIZATION_UNSUPPORTED, "--quantization awq"),
        ({"quantization": "gptq"}, StartCause.QUANTIZATION_UNSUPPORTED, "--quantization gptq"),
        ({"quantization": "squeezellm"}, StartCause.QUANTIZATION_UNSUPPORTED, "--quantization squeezellm"),
        ({"quantization": "fp8"}, StartCause.QUANTIZATION_UNSUPPORTED, "--quantization fp8"),
        ({"kv_cache_dtype": "fp8"}, StartCause.QUANTIZATION_UNSUPPORTED, "--kv-cache-dtype fp8"),
    ],
)
def test_what_is_missing_is_refused_by_name(values: dict[str, Any], cause: StartCause, said: str) -> None:
    with pytest.raises(StartError, match=said) as caught:
        settings(**values).check_supported()
    assert caught.value.cause is cause


def test_a_quantization_from_the_environment_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from octavo_runtime.settings import load_settings

    monkeypatch.setenv("OCTAVO_QUANTIZATION", "awq")
    with pytest.raises(StartError, match="--quantization awq"):
        load_settings({"model": "m"}).check_supported()


@pytest.mark.parametrize("values", [{}, {"device": "cpu"}, {"device": "auto", "quantization": "none"}])
def test_what_there_is_passes_in_silence(values: dict[str, Any]) -> None:
    settings(**values).check_supported()
    assert settings(**values).warnings() == []


def test_what_means_something_else_here_is_warned_about() -> None:
    (float16,) = settings(dtype="float16").warnings()
    assert "twice the memory" in float16
    (code,) = settings(trust_remote_code=True).warnings()
    assert code.startswith("--trust-remote-code has no effect")
