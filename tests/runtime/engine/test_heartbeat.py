import os

from octavo_runtime.engine.heartbeat import Heartbeat


def test_a_beat_is_seen_through_another_mapping_of_the_same_memory() -> None:
    parent = Heartbeat.create()
    child = Heartbeat(os.dup(parent.descriptor))
    child.beat(has_work=True)
    assert (parent.steps, parent.has_work) == (1, True)
    assert 0 <= parent.age() < 60
    child.close()
    parent.close()


def test_a_pulse_that_never_beat_has_no_age() -> None:
    heartbeat = Heartbeat.create()
    assert (heartbeat.steps, heartbeat.age()) == (0, 0.0)
    heartbeat.close()
