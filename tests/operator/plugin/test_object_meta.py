"""What a person may write into metadata, as a schema."""

import pytest
from jsonschema import Draft202012Validator

from octavo_operator.plugin.object_meta import OBJECT_META


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(OBJECT_META)


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("team", True),
        ("app.kubernetes.io/name", True),
        ("a" * 63, True),
        ("a" * 64, False),
        ("-a", False),
        ("a/b/c", False),
        ("Example.com/a", False),
        ("", False),
        ("a\n", False),
    ],
)
def test_keys_of_labels_and_annotations(key: str, good: bool) -> None:
    for field in ("labels", "annotations"):
        assert Draft202012Validator(OBJECT_META).is_valid({field: {key: "x"}}) is good
