"""Argument list -> the flags' layer of the settings: names, groups, help, and one sentence for a wrong one.

Flags are made from `settings_groups.py`, so a new setting is a flag at once. Values stay text; the settings check them.
"""

import argparse
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from octavo_runtime.cli.retired_flags import without_retired
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.settings import Settings, load_settings
from octavo_runtime.settings_groups import GROUPS, flag_name, group_of

_BOOLEANS = {"true": True, "false": False}
_SEVERAL = (
    "served_model_name",
    "api_key",
    "allow_files",
    "ignore_files",
)  # take several words; other lists are written with commas or as JSON
_SHORT = {"tensor_parallel_size": "-tp", "pipeline_parallel_size": "-pp", "data_parallel_size": "-dp"}


class Parser(argparse.ArgumentParser):
    """argparse that reports a problem as StartError(INVALID_SETTINGS) instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise StartError(StartCause.INVALID_SETTINGS, message[0].upper() + message[1:].rstrip(".") + ".")


def add_settings(parser: argparse.ArgumentParser, groups: Iterable[str] = tuple(GROUPS)) -> None:
    """Flags of these groups, the model as the first positional argument, and --config."""
    _add_model(parser)
    for name in groups:
        group = GROUPS[name]
        section = parser.add_argument_group(group.title)
        for field, info in group.model_fields.items():
            _add(section, field, info)


def add_fields(parser: argparse.ArgumentParser, fields: Iterable[str]) -> None:
    """Flags of single settings, for a verb that wants no whole group; the model and --config as in `add_settings`."""
    _add_model(parser)
    for field in fields:
        _add(parser, field, GROUPS[group_of(field)].model_fields[field])


def settings_of(parsed: argparse.Namespace) -> Settings:
    """The settings that these flags, the environment and the file give. Raises StartError(INVALID_SETTINGS)."""
    fields = {field for group in GROUPS.values() for field in group.model_fields}
    flags = {field: value for field, value in vars(parsed).items() if field in fields}
    if parsed.model_positional is not None:
        if flags.get("model", parsed.model_positional) != parsed.model_positional:
            message = f"Two models are given: {parsed.model_positional} and --model {flags['model']}; name one."
            raise StartError(StartCause.INVALID_SETTINGS, message)
        flags["model"] = parsed.model_positional
    return load_settings(flags, parsed.config)


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """(what was given, warnings about retired flags). Underscores in flags are dashes, as vLLM takes them."""
    kept, warnings = without_retired([_with_dashes(argument) for argument in arguments])
    parsed, unknown = parser.parse_known_args(_without_booleans(kept))
    if unknown:
        known = [flag_name(field) for group in GROUPS.values() for field in group.model_fields]
        close = get_close_matches(unknown[0].partition("=")[0], known, n=1)
        hint = f"did you mean {close[0]}?" if close else "see --help."
        raise StartError(StartCause.INVALID_SETTINGS, f"There is no argument {unknown[0]}; {hint}")
    return parsed, warnings


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model_positional", nargs="?", metavar="MODEL", help=_help("model"))
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file with settings; flags go before it")


def _add(section: argparse._ActionsContainer, field: str, info: FieldInfo) -> None:
    options: dict[str, Any] = {"dest": field, "default": argparse.SUPPRESS, "help": _help(field)}
    flags = [flag_name(field), *([_SHORT[field]] if field in _SHORT else [])]
    if info.annotation is bool:
        section.add_argument(*flags, action="store_true", **options)
        options["help"] = argparse.SUPPRESS
        section.add_argument(_negated(flags[0]), action="store_false", **options)
    elif field in _SEVERAL:
        section.add_argument(*flags, nargs="+", action="extend", metavar=_metavar(field, info), **options)
    else:
        section.add_argument(*flags, metavar=_metavar(field, info), **options)


def _help(field: str) -> str:
    info = GROUPS[group_of(field)].model_fields[field]
    default = info.default
    if default is PydanticUndefined or default is None or default == ():
        return str(info.description).replace("%", "%%")
    shown = (
        ",".join(default)
        if isinstance(default, tuple)
        else str(default).lower()
        if default in (True, False)
        else default
    )
    return f"{info.description} (default: {shown})".replace("%", "%%")


def _metavar(field: str, info: FieldInfo) -> str:
    """The choices where there are few, else what kind of thing it is."""
    kind = info.annotation
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(choice.value for choice in kind)
    return field.rpartition("_")[2].upper()


def _with_dashes(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value


def _without_booleans(arguments: Sequence[str]) -> list[str]:
    """`--flag=false` and `--flag false`, as older manifests write them, become `--no-flag`."""
    switches = {
        flag_name(name)
        for group in GROUPS.values()
        for name, info in group.model_fields.items()
        if info.annotation is bool
    }
    kept: list[str] = []
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        if equals and flag in switches:
            kept.append(_switch(flag, value))
        elif kept and kept[-1] in switches and argument.lower() in _BOOLEANS:
            kept.append(_switch(kept.pop(), argument))
        else:
            kept.append(argument)
    return kept


def _switch(flag: str, value: str) -> str:
    if value.lower() not in _BOOLEANS:
        raise StartError(StartCause.INVALID_SETTINGS, f"{flag} must be true or false, got {value[:100]!r}.")
    return flag if _BOOLEANS[value.lower()] else _negated(flag)


def _negated(flag: str) -> str:
    return "--no-" + flag[2:]
