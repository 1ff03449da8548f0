"""Every setting is one flag, with help, in one group."""

from collections import Counter

import pytest

from octavo_runtime.errors import StartError
from octavo_runtime.settings_groups import GROUPS, flag_name, group_of

FIELDS = [field for group in GROUPS.values() for field in group.model_fields]


def test_names_are_unique_over_all_groups() -> None:
    assert [field for field, count in Counter(FIELDS).items() if count > 1] == []


@pytest.mark.parametrize("field", FIELDS)
def test_setting_has_a_line_of_help(field: str) -> None:
    info = GROUPS[group_of(field)].model_fields[field]
    assert info.description
    assert "\n" not in info.description


def test_flags_have_dashes() -> None:
    assert flag_name("max_model_len") == "--max-model-len"


def test_unknown_setting_is_answered_with_a_close_one() -> None:
    with pytest.raises(StartError, match="did you mean --max-model-len"):
        group_of("max_modle_len")
