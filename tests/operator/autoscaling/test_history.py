from octavo_operator.autoscaling.history import AutoState, Wish, restore


def test_a_wish_holds_until_another_comes_however_long_that_takes() -> None:
    state = AutoState.start(3, now=0.0).wish(1, now=200.0, window=300)
    assert [wish.wanted for wish in state.wished_since(150.0)] == [3, 1]
    later = state.wish(1, now=520.0, window=300)
    assert [wish.wanted for wish in later.wished_since(220.0)] == [1]


def test_the_same_wish_again_takes_no_memory() -> None:
    state = AutoState.start(2, now=0.0)
    for second in range(100):
        state = state.wish(2, now=float(second), window=300)
    assert state.wishes == (Wish(2, 99.0),)


def test_wishes_older_than_the_window_are_forgotten() -> None:
    state = AutoState.start(1, now=0.0)
    for second in range(1000):
        state = state.wish(second % 2, now=float(second), window=60)
    assert len(state.wishes) <= 62


def test_the_present_wish_counts_even_in_no_window() -> None:
    state = AutoState.start(1, now=0.0).wish(5, now=10.0, window=300)
    assert [wish.wanted for wish in state.wished_since(10.0)] == [5]


def test_moves_are_told_by_direction_for_a_period() -> None:
    state = AutoState.start(1, 0.0).move(3, 10.0, 60).move(2, 20.0, 60)
    assert state.desired == 2
    assert state.moved(0.0, 1) == ((10.0, 2),)
    assert state.moved(0.0, -1) == ((20.0, 1),)
    assert state.moved(10.0, 1) == ()
    assert state.move(2, 100.0, 60).moves == ()


def test_after_a_restart_the_number_goes_on_where_it_was() -> None:
    status = {"desired": 4, "decisions": [{"at": "1970-01-01T00:01:00Z", "from": 3, "to": 4, "reason": "r"}]}
    state = restore(status, default=1, now=100.0)
    assert (state.desired, state.sought, state.moves) == (4, 4, ((60.0, 1),))
    assert state.wishes == (Wish(4, 100.0),)


def test_without_a_status_it_starts_with_what_runs() -> None:
    assert restore({}, default=2, now=1.0) == AutoState.start(2, 1.0)
    assert restore({"desired": "many"}, default=2, now=1.0) == AutoState.start(2, 1.0)
