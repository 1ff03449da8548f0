"""`log_prompts`: the beginning of each prompt as a log line, for servers that were told to (--log-prompts).

Off by default: prompts are private. A prompt cannot write lines of its own.
"""

import logging
from collections.abc import Sequence

from octavo_runtime.server.prompts import Prompt

_log = logging.getLogger("octavo.prompts")
_MAX_CHARACTERS, _MAX_IDS = 200, 32


def log_prompts(request_id: str, prompts: Sequence[Prompt]) -> None:
    """One line a prompt."""
    for place, prompt in enumerate(prompts):
        count = len(prompt.token_ids)
        _log.info("%s prompt %d, %d tokens: %s", request_id, place, count, _beginning(prompt))


def _beginning(prompt: Prompt) -> str:
    if prompt.text is None:
        more = " ..." if len(prompt.token_ids) > _MAX_IDS else ""
        return f"{prompt.token_ids[:_MAX_IDS]}{more}"
    more = " ..." if len(prompt.text) > _MAX_CHARACTERS else ""
    return ascii(prompt.text[:_MAX_CHARACTERS]) + more
