"""The command line: what it takes, and one sentence for what it does not."""

import pytest

from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.flags import parser


def test_verbs_and_their_flags() -> None:
    why = parser().parse_args(["why", "smollm", "-n", "team", "--context", "prod"])
    assert (why.verb, why.name, why.namespace, why.context) == ("why", "smollm", "team", "prod")
    status = parser().parse_args(["status", "-A", "--watch"])
    assert (status.name, status.all_namespaces, status.watch) == (None, True, True)
    plan = parser().parse_args(["plan", "-f", "x.yaml", "--gpu", "NVIDIA-L4", "--gpu-memory", "24Gi"])
    assert (plan.filename, plan.gpu, plan.gpu_memory) == (["x.yaml"], "NVIDIA-L4", 24 << 30)
    assert parser().parse_args(["drain", "smollm-a", "--undo"]).undo
    assert parser().parse_args(["top"]).interval == 2.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "VERB"),
        (["explain"], "explain"),
        (["why"], "name"),
        (["plan"], "-f/--filename"),
        (["plan", "-f", "x", "--gpu-memory", "lots"], "lots"),
        (["top", "--interval", "0"], "0.1 to 600"),
        (["top", "--interval", "soon"], "soon"),
    ],
)
def test_mistakes_are_one_sentence(arguments: list[str], words: str) -> None:
    with pytest.raises(PluginError) as caught:
        parser().parse_args(arguments)
    assert words in str(caught.value)
    assert str(caught.value).endswith("see `kubectl octavo --help`.")


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--help"])
    printed = capsys.readouterr().out
    assert all(f"    {verb} " in printed for verb in ("why", "status", "top", "drain", "plan"))
