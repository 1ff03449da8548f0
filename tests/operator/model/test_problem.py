from octavo_operator.model.problem import ModelProblem, Refusal
from octavo_operator.reasons import Reason


def test_a_problem_says_its_sentence_when_it_is_printed() -> None:
    problem = ModelProblem(Reason.MODEL_RATE_LIMITED, "Too many requests.", 5.0)
    assert str(problem) == problem.message == "Too many requests."
    assert problem.retry_after == 5.0


def test_a_refusal_is_a_value() -> None:
    refusal = Refusal(Reason.WEIGHTS_TOO_LARGE, "No.", "Do so.")
    assert refusal == Refusal(Reason.WEIGHTS_TOO_LARGE, "No.", "Do so.")
