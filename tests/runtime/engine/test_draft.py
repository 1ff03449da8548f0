from collections.abc import Callable

from octavo_runtime.engine.budget import SchedulingBudget
from octavo_runtime.engine.draft import StepDraft
from octavo_runtime.engine.sequence import SequenceGroup


def test_dropping_a_group_gives_back_all_that_it_took(new_group: Callable[..., SequenceGroup]) -> None:
    draft = StepDraft(SchedulingBudget(32, 8), max_logits_rows=10)
    group, other = new_group([1] * 6, prompt_logprobs=0), new_group([1] * 6)
    draft.budget.add_num_seqs(group.request_id, 1)
    draft.add(group, [(group.leader, 6)])
    draft.add(other, [(other.leader, 5)])
    assert (draft.budget.num_tokens, draft.logits_rows_left) == (11, 4)
    assert draft.drop(group) == ()
    assert (draft.budget.num_tokens, draft.budget.num_seqs, draft.logits_rows_left) == (5, 0, 10)
    assert list(draft.work) == [other]


def test_dropping_what_was_never_added_changes_nothing(new_group: Callable[..., SequenceGroup]) -> None:
    draft = StepDraft(SchedulingBudget(32, 8), max_logits_rows=10)
    assert draft.drop(new_group([1], prompt_logprobs=0)) == ()
    assert (draft.budget.num_tokens, draft.logits_rows_left) == (0, 10)
