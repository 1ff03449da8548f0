"""Stop strings: first complete match wins, whatever the pieces are."""

from hypothesis import given
from hypothesis import strategies as st

from octavo_runtime.text.stop import StopStrings

TEXT = st.text(alphabet="abc", max_size=30)
STOPS = st.lists(st.text(alphabet="abc", min_size=1, max_size=4), min_size=1, max_size=4).map(tuple)


def run(stops: tuple[str, ...], pieces: list[str], include: bool = False) -> tuple[str, str | None]:
    stop, out = StopStrings(stops, include), ""
    for piece in pieces:
        result = stop.push(piece)
        out += result.text
        if result.stopped_by is not None:
            return out, result.stopped_by
    return out + stop.flush(), None


def test_match_across_pieces_is_found_and_never_leaks() -> None:
    assert run(("</end>",), ["hello <", "/e", "nd> more"]) == ("hello ", "</end>")


def test_leftmost_match_wins_not_the_first_listed() -> None:
    assert run(("world", "hello"), ["say hello world"]) == ("say ", "hello")


def test_of_matches_that_end_together_the_longest_wins() -> None:
    assert run(("b", "ab"), ["xab"]) == ("x", "ab")


def test_stop_string_can_stay_in_the_text() -> None:
    assert run(("END",), ["go EN", "D on"], include=True) == ("go END", "END")


def test_text_is_held_only_while_it_could_begin_a_stop_string() -> None:
    stop = StopStrings(("abc",))
    assert stop.push("xxab").text == "xx"
    assert stop.push("d").text == "abd"


def test_held_text_comes_out_at_the_end() -> None:
    assert run(("abc",), ["xxab"]) == ("xxab", None)


def test_match_that_may_not_stop_yet_passes() -> None:
    stop = StopStrings(("ab", "xaby"))
    assert stop.push("xab", may_stop=False).text == ""
    assert stop.push("c").text == "xabc"


def test_match_that_began_before_it_may_stop_counts() -> None:
    stop = StopStrings(("abc",))
    assert stop.push("ab", may_stop=False).text == ""
    assert stop.push("c").stopped_by == "abc"


@given(TEXT, STOPS, st.lists(st.integers(1, 5), max_size=30), st.booleans())
def test_every_split_gives_the_same_result(text: str, stops: tuple[str, ...], sizes: list[int], include: bool) -> None:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    pieces.append(text[at:])
    assert run(stops, pieces, include) == run(stops, [text], include)


@given(TEXT, STOPS)
def test_no_stop_string_is_left_in_the_text(text: str, stops: tuple[str, ...]) -> None:
    out, stopped_by = run(stops, [text])
    assert not any(stop in out for stop in stops)
    assert (stopped_by is None) == (not any(stop in text for stop in stops))
