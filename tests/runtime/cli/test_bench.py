"""Figures of a run against a server."""

import json
from pathlib import Path
from typing import Any

import pytest

from octavo_runtime.cli.main import run


def test_online_figures(server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"
    flags = ["--num-prompts", "3", "--input-len", "5", "--output-len", "2", "--output-json", str(file)]
    assert run(["bench", "--url", server.url, *flags]) == 0
    figures = json.loads(file.read_text())
    assert figures["total_tokens_per_s"] == pytest.approx(figures["output_tokens_per_s"] * 7 / 2)
    assert {"ttft_p50_ms", "itl_p99_ms", "e2e_p50_ms"} <= figures.keys()
    assert "requests_per_s" in capsys.readouterr().out
    bodies = server.bodies
    assert len(bodies) == 4  # one to warm up
    assert [len(body["prompt"]) for body in bodies] == [5] * 4
    assert all(body["ignore_eos"] for body in bodies)
