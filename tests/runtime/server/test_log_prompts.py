"""Prompts are logged only when asked for, cut, and on one line."""

import logging

from octavo_runtime.server.log_prompts import log_prompts
from octavo_runtime.server.prompts import Prompt


async def test_a_server_that_was_not_told_to_logs_no_prompt(serve, caplog):
    served = await serve()
    with caplog.at_level(logging.DEBUG):
        await served.complete(prompt="private words")
    assert "private" not in caplog.text


async def test_a_server_that_was_told_to_logs_the_prompt_and_no_key(serve, caplog):
    served = await serve(log_prompts=True, api_keys=("secret",))
    with caplog.at_level(logging.INFO, "octavo.prompts"):
        headers = {"Authorization": "Bearer secret", "X-Request-Id": "call-1"}
        await served.post("/v1/completions", {"prompt": "private words"}, headers=headers)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "octavo.prompts"]
    assert line == "cmpl-call-1 prompt 0, 14 tokens: 'private words'"
    assert "secret" not in caplog.text


def test_long_prompts_are_cut_and_none_ends_the_line(caplog):
    with caplog.at_level(logging.INFO, "octavo.prompts"):
        log_prompts("a", [Prompt([1], "x\nFAKE \u2028 é" + "y" * 500), Prompt(list(range(100)), None)])
    text, ids = [record.getMessage() for record in caplog.records]
    assert text.isprintable()
    assert text.endswith(" ...")
    assert len(text) < 300
    assert ids.endswith("31] ...")
