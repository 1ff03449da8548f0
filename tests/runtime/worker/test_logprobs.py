import torch

from octavo_runtime.worker.logprobs import ROWS_AT_ONCE, likeliest, token_logprobs


def test_more_rows_than_fit_at_once_come_in_order() -> None:
    count = 2 * ROWS_AT_ONCE + 3
    logits = torch.randn(count, 11, generator=torch.Generator().manual_seed(0))
    tokens = [i % 11 for i in range(count)]
    entries = token_logprobs(logits, tokens, [i % 3 for i in range(count)])
    expected = logits.log_softmax(-1)
    for i, entry in enumerate(entries):
        assert entry.token_id == tokens[i]
        assert abs(entry.logprob - float(expected[i, tokens[i]])) < 1e-5
        assert len(entry.top) == i % 3
        assert entry.rank == int((logits[i] > logits[i, tokens[i]]).sum()) + 1


def test_banned_tokens_are_no_candidates() -> None:
    raw = torch.tensor([1.0, 2.0, 3.0])
    processed = torch.tensor([1.0, float("-inf"), float("-inf")])
    candidates = likeliest(processed, raw, 3)
    assert [token for token, _ in candidates] == [0]
