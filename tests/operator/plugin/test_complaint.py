"""A complaint reads as one line."""

from octavo_operator.plugin.complaint import Complaint, field_of


def test_a_complaint_begins_with_its_field() -> None:
    assert str(Complaint("spec.replicas", "write 1")) == "spec.replicas: write 1"


def test_a_complaint_about_the_whole_object_has_no_field() -> None:
    assert str(Complaint("", "write a shorter name")) == "write a shorter name"


def test_the_field_may_be_a_secret_that_stands_in_the_wrong_place_and_the_message_is_kept() -> None:
    told = str(Complaint("spec.pod.labels.hf_abcdefgh", "--api-key: write access.apiKeys"))
    assert told == "spec.pod.labels.hf_***: --api-key: write access.apiKeys"


def test_a_field_is_written_as_in_a_manifest() -> None:
    assert field_of(("spec", "engine", "extraArgs", 3)) == "spec.engine.extraArgs[3]"
    assert field_of(()) == ""
