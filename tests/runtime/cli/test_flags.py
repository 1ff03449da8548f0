"""Flags as vLLM's manifests write them."""

import argparse

import pytest

from octavo_runtime.cli.flags import Parser, add_fields, add_settings, parse, settings_of
from octavo_runtime.errors import StartError
from octavo_runtime.settings import Settings


def settings(*arguments: str) -> Settings:
    parser = Parser(prog="octavo serve", allow_abbrev=False)
    add_settings(parser)
    return settings_of(parse(parser, arguments)[0])


def test_model_is_positional_or_a_flag() -> None:
    assert settings("m").model.model == settings("--model", "m").model.model == "m"
    with pytest.raises(StartError, match="Two models"):
        settings("a", "--model", "b")


def test_underscores_are_dashes() -> None:
    assert settings("m", "--max_model_len=4k", "--chat_template", "{{ a_b }}").model.chat_template == "{{ a_b }}"


@pytest.mark.parametrize(
    ("arguments", "enabled"),
    [
        ([], True),
        (["--enable-prefix-caching"], True),
        (["--no-enable-prefix-caching"], False),
        (["--enable-prefix-caching=false"], False),
        (["--enable-prefix-caching", "False"], False),
        (["--enable-prefix-caching", "true"], True),
    ],
)
def test_switches_in_every_spelling(arguments: list[str], enabled: bool) -> None:
    assert settings("m", *arguments).cache.enable_prefix_caching is enabled


def test_switch_does_not_take_the_model_as_its_value() -> None:
    assert settings("--enable-prefix-caching", "m").model.model == "m"


def test_switch_with_another_value_is_refused() -> None:
    with pytest.raises(StartError, match="--enable-prefix-caching must be true or false"):
        settings("m", "--enable-prefix-caching=perhaps")


def test_several_names_and_keys() -> None:
    made = settings("m", "--served-model-name", "a", "b", "--api-key", "x", "--api-key=y", "--allowed-origins", '["o"]')
    assert (made.served_names, made.server.api_key) == (("a", "b"), ("x", "y"))
    assert made.server.allowed_origins == ("o",)


def test_short_names_of_vllm() -> None:
    assert settings("m", "-tp", "1", "-pp=1").device.tensor_parallel_size == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["m", "--prt", "1"], "did you mean --port"), (["m", "--port"], "--port"), (["m", "n"], "There is no argument n")],
)
def test_wrong_arguments_are_one_sentence(arguments: list[str], said: str) -> None:
    with pytest.raises(StartError, match=said):
        settings(*arguments)


def test_help_shows_groups_and_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="octavo serve")
    add_settings(parser)
    assert isinstance(parser, argparse.ArgumentParser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    choices = "--quantization auto|none|awq|gptq|squeezellm|fp8"
    for part in ("Model:", "KV cache:", "Server:", "--max-num-seqs", "(default: 128)", "(default: true)", choices):
        assert part in shown


def test_globs_are_several_words() -> None:
    made = settings("m", "--allow-files", "*.json", "a,b.txt", "--ignore-files=*.bin", "--ignore-files", "x")
    assert made.model.allow_files == ("*.json", "a,b.txt")
    assert made.model.ignore_files == ("*.bin", "x")


def test_a_verb_may_have_single_settings_as_flags() -> None:
    parser = Parser(prog="octavo download", allow_abbrev=False)
    add_fields(parser, ("revision", "log_level"))
    made = settings_of(parse(parser, ("m", "--revision", "r", "--log-level", "debug"))[0])
    assert (made.model.model, made.model.revision, made.log.log_level) == ("m", "r", "debug")
    with pytest.raises(StartError, match="no argument --port"):
        parse(parser, ("m", "--port", "1"))
