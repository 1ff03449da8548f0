"""What the server is told of the settings, TLS, and the metrics of the process."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.listener import make_ssl_context, process_registry, server_config
from octavo_runtime.settings import Settings


def test_the_server_is_told_the_models_own_name_unless_others_are_given() -> None:
    assert server_config(Settings.from_values({"model": "org/tiny"})).served_model_names == ("org/tiny",)
    assert server_config(Settings.from_values({"model": "embedded"})).model_name == "SmolLM2-135M-Instruct"
    url = "https://models.example/a/tiny.Q4_0.gguf"
    assert server_config(Settings.from_values({"model": url})).model_name == "tiny.Q4_0"
    named = server_config(Settings.from_values({"model": "m", "served_model_name": ["a", "b"]}))
    assert named.served_model_names == ("a", "b")


def test_settings_of_the_server_reach_it() -> None:
    values = {
        "allowed_origins": ["https://a.example"], "max_body_bytes": 5000, "max_num_queued_reqs": 7, "max_logprobs": 3,
        "stream_interval": 4, "disable_access_log": True, "root_path": "/llm", "log_prompts": True, "engine_hang_timeout": 0,
    }  # fmt: skip
    config = server_config(Settings.from_values({"model": "m", **values}))
    assert config.allowed_origins == ("https://a.example",)
    assert (config.max_body_bytes, config.max_num_queued_reqs, config.max_logprobs) == (5000, 7, 3)
    assert (config.stream_interval, config.access_log, config.root_path) == (4, False, "/llm")
    assert (config.log_prompts, config.liveness_timeout) == (True, 0)


def test_tls_needs_files_that_exist(tmp_path: Path) -> None:
    assert make_ssl_context(Settings.from_values({"model": "m"})) is None
    with pytest.raises(StartError, match="--ssl-keyfile needs --ssl-certfile") as caught:
        make_ssl_context(Settings.from_values({"model": "m", "ssl_keyfile": tmp_path / "key"}))
    assert caught.value.cause is StartCause.INVALID_SETTINGS
    with pytest.raises(StartError, match=str(tmp_path / "cert")):
        make_ssl_context(Settings.from_values({"model": "m", "ssl_certfile": tmp_path / "cert"}))


def test_tls_with_a_certificate_gives_a_context(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-keyout", tmp_path / "key", "-out", tmp_path / "cert"],
        capture_output=True, check=True,
    )  # fmt: skip
    files = {"ssl_certfile": tmp_path / "cert", "ssl_keyfile": tmp_path / "key", "ssl_ca_certs": tmp_path / "cert"}
    context = make_ssl_context(Settings.from_values({"model": "m", **files}))
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_process_metrics_are_in_the_registry() -> None:
    text = generate_latest(process_registry()).decode()
    assert "process_resident_memory_bytes" in text
    assert "python_info" in text
