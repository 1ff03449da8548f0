"""`SchedulingBudget`: what one step may still take, in tokens and in sequences.

A request is counted once however often it is asked for: taking again replaces nothing, giving back what was never taken
does nothing. Made anew for every step; knows no queue.
"""


class SchedulingBudget:
    """Tokens and sequences left in a step."""

    __slots__ = ("_sequences", "_tokens", "max_num_seqs", "num_seqs", "num_tokens", "token_budget")

    def __init__(self, token_budget: int, max_num_seqs: int) -> None:
        self.token_budget = token_budget
        self.max_num_seqs = max_num_seqs
        self.num_tokens = 0
        self.num_seqs = 0
        self._tokens: dict[str, int] = {}
        self._sequences: dict[str, int] = {}

    @property
    def remaining_tokens(self) -> int:
        return self.token_budget - self.num_tokens

    def can_schedule(self, num_new_tokens: int, num_new_seqs: int) -> bool:
        """Whether both still fit."""
        return (
            self.num_tokens + num_new_tokens <= self.token_budget and self.num_seqs + num_new_seqs <= self.max_num_seqs
        )

    def add_num_batched_tokens(self, request_id: str, num_tokens: int) -> None:
        if request_id not in self._tokens:
            self._tokens[request_id] = num_tokens
            self.num_tokens += num_tokens

    def subtract_num_batched_tokens(self, request_id: str) -> None:
        self.num_tokens -= self._tokens.pop(request_id, 0)

    def add_num_seqs(self, request_id: str, num_seqs: int) -> None:
        if request_id not in self._sequences:
            self._sequences[request_id] = num_seqs
            self.num_seqs += num_seqs

    def subtract_num_seqs(self, request_id: str) -> None:
        self.num_seqs -= self._sequences.pop(request_id, 0)
