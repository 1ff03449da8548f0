"""A complaint reads as one line."""

from octavo_operator.plugin.complaint import Complaint


def test_a_complaint_begins_with_its_field() -> None:
    assert str(Complaint("spec.replicas", "write 1")) == "spec.replicas: write 1"


def test_a_complaint_about_the_whole_object_has_no_field() -> None:
    assert str(Complaint("", "write a shorter name")) == "write a shorter name"
