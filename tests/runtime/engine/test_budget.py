from octavo_runtime.engine.budget import SchedulingBudget


def test_both_limits_count() -> None:
    budget = SchedulingBudget(token_budget=10, max_num_seqs=2)
    budget.add_num_batched_tokens("a", 7)
    budget.add_num_seqs("a", 1)
    assert budget.can_schedule(3, 1)
    assert not budget.can_schedule(4, 1)
    assert not budget.can_schedule(1, 2)
    assert budget.remaining_tokens == 3


def test_one_request_is_never_counted_twice() -> None:
    budget = SchedulingBudget(token_budget=10, max_num_seqs=4)
    for _ in range(2):
        budget.add_num_batched_tokens("a", 7)
        budget.add_num_seqs("a", 2)
    assert (budget.num_tokens, budget.num_seqs) == (7, 2)


def test_giving_back_is_exact_and_idempotent() -> None:
    budget = SchedulingBudget(token_budget=10, max_num_seqs=4)
    budget.add_num_batched_tokens("a", 7)
    budget.add_num_seqs("a", 2)
    for _ in range(2):
        budget.subtract_num_batched_tokens("a")
        budget.subtract_num_seqs("a")
        budget.subtract_num_seqs("never seen")
    assert (budget.num_tokens, budget.num_seqs) == (0, 0)
