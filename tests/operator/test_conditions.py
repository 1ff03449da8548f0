"""A status may have no conditions yet."""

from octavo_operator.conditions import condition


def test_a_condition_is_found_by_its_type() -> None:
    ready = {"type": "Ready", "status": "True"}
    assert condition({"conditions": [{"type": "Stalled"}, ready]}, "Ready") == ready
    assert condition({"conditions": None}, "Ready") == {}
    assert condition({}, "Ready") == {}
