from octavo_operator.autoscaling.decisions import Change, from_status, record, to_status


def test_the_last_five_changes_are_kept() -> None:
    changes: tuple[Change, ...] = ()
    for number in range(7):
        changes = record(changes, Change(float(number), number, number + 1, "r"))
    assert [change.at for change in changes] == [2, 3, 4, 5, 6]


def test_a_decision_to_stay_is_not_kept() -> None:
    assert record((), Change(1.0, 2, 2, "r")) == ()


def test_status_shows_them_and_gives_them_back() -> None:
    changes = (Change(0.0, 1, 2, "12 waiting requests (target 5 per replica): 3 wanted"),)
    assert to_status(changes) == [
        {
            "at": "1970-01-01T00:00:00Z",
            "from": 1,
            "to": 2,
            "reason": "12 waiting requests (target 5 per replica): 3 wanted",
        }
    ]
    assert from_status(to_status(changes)) == changes


def test_entries_that_cannot_be_read_are_left_out() -> None:
    good = {"at": "1970-01-01T00:00:05Z", "from": 1, "to": 2}
    assert from_status([{}, {"at": "soon", "from": 1, "to": 2}, {**good, "to": "x"}, good]) == (Change(5.0, 1, 2, ""),)
