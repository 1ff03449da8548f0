"""Old manifests start; what would change the service is refused."""

import pytest

from octavo_runtime.cli.retired_flags import LATER, RETIRED, without_retired
from octavo_runtime.errors import StartError
from octavo_runtime.settings_groups import GROUPS, flag_name


@pytest.mark.parametrize("flag", RETIRED)
def test_retired_flag_goes_with_one_warning(flag: str) -> None:
    value = ["7"] if RETIRED[flag][0] else []
    kept, warnings = without_retired(["m", flag, *value, "--port", "1", flag, *value])
    assert kept == ["m", "--port", "1"]
    assert len(warnings) == 1
    assert warnings[0].startswith(flag + " has no effect")


def test_value_may_be_joined() -> None:
    assert without_retired(["--num-scheduler-steps=8", "-O3", "m"])[0] == ["m"]


def test_value_that_is_missing_takes_no_other_flag() -> None:
    assert without_retired(["--num-scheduler-steps", "--port", "1"])[0] == ["--port", "1"]


@pytest.mark.parametrize("flag", LATER)
def test_later_feature_is_refused(flag: str) -> None:
    with pytest.raises(StartError, match=flag):
        without_retired(["m", flag + "=x"])


def test_no_flag_is_both_alive_and_retired() -> None:
    alive = {flag_name(field) for group in GROUPS.values() for field in group.model_fields}
    assert not alive & (RETIRED.keys() | LATER.keys())
