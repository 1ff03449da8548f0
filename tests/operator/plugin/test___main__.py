"""The whole command: exit codes, and errors as one sentence on standard error."""

import sys
from pathlib import Path
from typing import Any

import pytest

from octavo_operator.kube_client import Unavailable
from octavo_operator.plugin import __main__ as command
from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.flags import parser
from octavo_operator.testing import FakeKube

MANIFEST = """\
apiVersion: octavo.dev/v1alpha1
kind: LLMDeployment
metadata: {name: x}
spec: {model: {uri: "hf://org/x"}}
"""


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_mistyped_verb_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("wyh", "smollm") == 2
    printed = capsys.readouterr().err
    assert "see `kubectl octavo --help`" in printed
    assert "Traceback" not in printed


def test_a_missing_manifest_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("plan", "-f", str(tmp_path / "nowhere.yaml")) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_flags_that_need_each_other_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plan", "-f", "x.yaml", "--gpu-memory", "24Gi") == 2
    assert "--gpu-memory needs --gpu" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--gpu", "X", "--gpu-memory", "80gb"), "'80gb' is not a quantity"),
        (("--endpoint", "mirror.example"), "--endpoint is no address of a hub; write https://HOST"),
        ((), "HF_ENDPOINT is no address of a hub; write https://HOST"),
    ],
)
def test_a_bad_value_of_a_flag_or_a_variable_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://me:secret@mirror.example")
    assert run("plan", "-f", "x.yaml", *arguments) == 2
    printed = capsys.readouterr().err
    assert words in printed
    assert ".;" not in printed


def test_a_kubeconfig_that_is_not_there_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    assert run("status") == 2
    assert capsys.readouterr().err.startswith("There is no kubeconfig /nowhere/config; write --kubeconfig FILE")


@pytest.mark.parametrize("source", ["flag", "variable"])
def test_the_hub_is_that_of_the_flag_or_of_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str
) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(MANIFEST)
    arguments = ["--endpoint", "http://127.0.0.1:9"] if source == "flag" else []
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:8" if source == "flag" else "http://127.0.0.1:9")
    assert run("plan", "-f", str(path), *arguments) == 2
    assert "http://127.0.0.1:9 cannot be reached" in capsys.readouterr().out


def test_several_files_are_planned(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).write_text(
            MANIFEST.replace("name: x", f"name: {name}").replace("hf://org/x", "pvc://claim/x")
        )
    assert run("plan", "-f", str(tmp_path / "first"), "-f", str(tmp_path / "second")) == 0
    assert {"first", "second"} <= set(capsys.readouterr().out.split())


def test_what_goes_to_a_pipe_is_not_folded(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(MANIFEST.replace("hf://org/x", "https://" + "long/" * 30))
    assert run("plan", "-f", str(path)) == 1
    [told] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("- ")]
    assert len(told) > 80


def test_a_token_file_that_is_not_there_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(MANIFEST)
    assert run("plan", "-f", str(path), "--token-file", str(tmp_path / "absent")) == 2
    assert "--token-file" in capsys.readouterr().err


def test_a_token_file_that_holds_no_text_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"\xff\xfe")
    assert run("plan", "-f", "x.yaml", "--token-file", str(tmp_path / "token")) == 2
    assert "holds no token" in capsys.readouterr().err


def test_an_unreachable_cluster_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(**_: Any) -> None:
        raise Unavailable(0, "no answer from the API server")

    monkeypatch.setattr(command.Kube, "connect", refuse)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert run("why", "smollm", "-n", "team") == 2
    assert capsys.readouterr().err.startswith("The cluster does not answer")


def test_an_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(coroutine: Any) -> None:
        coroutine.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(command.asyncio, "run", interrupted)
    assert run("status", "--watch", "-n", "team") == 130


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["why", "smollm"], "LLMDeployment team/smollm"),
        (["status"], "NAME"),
        (["top", "--interval", "0.1"], "POD"),
        (["drain", "smollm-a"], "replaced"),
    ],
)
async def test_every_verb_runs(
    arguments: list[str], words: str, kube: FakeKube, cluster: Cluster, terminal: Any, samples: Any
) -> None:
    kube.put(samples.serving_pod("smollm-a", samples.running()))
    await command.run_verb(parser().parse_args(arguments), cluster, terminal.console)
    assert words in terminal.text


def test_the_module_can_be_run_by_its_name() -> None:
    assert "octavo_operator.plugin.__main__" in sys.modules
