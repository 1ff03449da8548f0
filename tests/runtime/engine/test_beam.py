from math import inf, isfinite

import hypothesis.strategies as st
from hypothesis import given, settings

from octavo_runtime.engine.beam import Beam, BeamSearch, Child
from octavo_runtime.engine.messages import FinishReason
from octavo_runtime.engine.sampling_params import MAX_LENGTH_PENALTY
from octavo_runtime.engine.simulation import SimulatedModel

NOTHING: frozenset[int] = frozenset()


def search(
    width: int = 2, length_penalty: float = 1.0, early: bool = False, terminators: set[int] | None = None
) -> BeamSearch:
    return BeamSearch(width, length_penalty, early, frozenset(terminators or ()))


def test_the_best_candidates_of_all_beams_live_on() -> None:
    beams = [Beam(-1.0, [5], [(1, -0.5), (2, -3.0)]), Beam(-1.2, [6], [(3, -0.1), (4, -0.2)])]
    children = search().advance(beams, NOTHING, at_limit=False)
    assert children == [Child(1, 3, -1.3), Child(1, 4, -1.4)]


def test_an_ending_candidate_counts_only_among_the_first_width() -> None:
    beams = [Beam(0.0, [5], [(1, -0.1), (2, -0.2), (9, -0.3), (3, -0.4)])]
    found = search(terminators={9})
    assert [child.token_id for child in found.advance(beams, NOTHING, at_limit=False)] == [1, 2]
    assert found.hypotheses == []


def test_a_hypothesis_scores_by_its_length_with_the_ending_token() -> None:
    found = search(length_penalty=2.0, terminators={9})
    found.advance([Beam(-1.0, [5], [(9, -1.0), (1, -1.5), (2, -1.6)])], NOTHING, at_limit=False)
    (hypothesis,) = found.hypotheses
    assert hypothesis.token_ids == [5, 9]
    assert hypothesis.score == -2.0 / 2**2
    assert hypothesis.cumulative_logprob == -2.0
    assert hypothesis.finish_reason is FinishReason.STOP


def test_enough_candidates_are_asked_for_to_go_on_beside_every_terminator() -> None:
    assert search(width=3).num_candidates == 3
    assert search(width=3, terminators={1}).num_candidates == 4
    assert search(width=3, terminators={1, 2, 3}).num_candidates == 6


@given(st.integers(0, 10_000), st.integers(1, 4), st.sets(st.integers(0, 11), max_size=6))
def test_candidates_that_are_not_asked_for_would_change_nothing(seed: int, width: int, terminators: set[int]) -> None:
    model = SimulatedModel(vocab_size=12)
    searches = [search(width=width, terminators=terminators, length_penalty=0.3) for _ in range(2)]
    asked = searches[0].num_candidates
    children = [
        one.advance(
            [Beam(-number / 7, [number], model.candidates([seed, number], count)) for number in range(width)],
            NOTHING,
            at_limit=False,
        )
        for one, count in zip(searches, (asked, 12), strict=True)
    ]
    assert children[0] == children[1]
    assert searches[0].hypotheses == searches[1].hypotheses


@given(st.floats(-MAX_LENGTH_PENALTY, MAX_LENGTH_PENALTY), st.integers(0, 1 << 20), st.floats(-1e9, 0), st.booleans())
def test_every_legal_length_penalty_gives_finite_scores(
    length_penalty: float, length: int, logprob: float, at_limit: bool
) -> None:
    found = search(width=1, length_penalty=length_penalty, terminators={9})
    beams = [Beam(-1e9, range(length), [(9, logprob), (1, logprob)])]
    found.advance(beams, NOTHING, at_limit)
    assert all(isfinite(hypothesis.score) for hypothesis in found.hypotheses)


def test_early_stopping_ends_with_the_width_th_hypothesis() -> None:
    candidates = [(9, -0.1), (8, -0.2), (1, -0.3), (2, -0.4)]
    patient, hasty = (search(terminators={8, 9}, early=early, length_penalty=-1.0) for early in (False, True))
    assert hasty.advance([Beam(-5.0, [5], candidates)], NOTHING, at_limit=False) == []
    assert len(hasty.best(2)) == 2
    assert patient.advance([Beam(-5.0, [5], candidates)], NOTHING, at_limit=False) == []


def test_the_search_goes_on_while_a_live_beam_may_still_win() -> None:
    found = search(width=1, terminators={9})
    beams = [Beam(-1.0, [5], [(9, -4.0), (1, -4.5)])]
    assert found.advance(beams, NOTHING, at_limit=False) == []  # -5.5 / 2 is worse than -5.0 / 2
    found = search(width=2, terminators={9})
    assert found.advance([Beam(-1.0, [5], [(9, -4.0), (1, -4.5), (2, -4.6)])], NOTHING, at_limit=False) != []


def test_at_the_limit_the_best_live_beams_are_the_result() -> None:
    found = search()
    assert found.advance([Beam(0.0, [5], [(1, -0.1), (2, -0.2), (3, -0.3)])], NOTHING, at_limit=True) == []
    assert [hypothesis.token_ids for hypothesis in found.best(2)] == [[5, 1], [5, 2]]
    assert found.best(1)[0].finish_reason is FinishReason.LENGTH


def test_banned_and_impossible_tokens_are_never_taken() -> None:
    beams = [Beam(0.0, [], [(9, -0.1), (1, -0.2), (2, -inf)])]
    children = search(terminators={9}).advance(beams, frozenset({9}), at_limit=False)
    assert [child.token_id for child in children] == [1]


def test_too_few_hypotheses_are_filled_up_with_the_last_one_and_none_stay_none() -> None:
    found = search(width=3)
    found.advance([Beam(0.0, [], [(1, -0.1)])], NOTHING, at_limit=True)
    assert [hypothesis.token_ids for hypothesis in found.best(3)] == [[1], [1], [1]]
    empty = search()
    assert empty.advance([Beam(0.0, [], [(1, -inf)])], NOTHING, at_limit=False) == []
    assert empty.best(2) == []


def run(model: SimulatedModel, prompt: list[int], beams: BeamSearch, max_tokens: int) -> list[list[int]]:
    live = [(0.0, list[int]())]
    while live:
        rows = [
            Beam(score, output, model.candidates(model.context(prompt + output), beams.num_candidates))
            for score, output in live
        ]
        children = beams.advance(rows, NOTHING, at_limit=len(live[0][1]) + 1 >= max_tokens)
        live = [(child.cumulative_logprob, [*live[child.parent][1], child.token_id]) for child in children]
    return [hypothesis.token_ids for hypothesis in beams.hypotheses]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 3))
def test_a_width_that_holds_everything_finds_the_best_of_all_sequences(first: int, max_tokens: int) -> None:
    model = SimulatedModel(vocab_size=4)
    prompt = [first]
    everything = [list[int]()]
    for _ in range(max_tokens):
        everything = [[*output, token_id] for output in everything for token_id in range(4)]

    def total(output: list[int]) -> float:
        return sum(model.logprob(model.context(prompt + output[:end]), output[end]) for end in range(len(output)))

    best = max(everything, key=total)
    assert run(model, prompt, search(width=64), max_tokens)[0] == best
