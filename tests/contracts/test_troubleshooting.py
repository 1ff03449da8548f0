"""The troubleshooting page is the operator's table, and the operator knows every cause that the runtime can write."""

import subprocess
import sys
from pathlib import Path

from octavo_operator.reasons import FROM_CAUSE, Reason
from octavo_runtime.errors import StartCause

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"


def test_page_is_made_from_the_table_of_reasons() -> None:
    command = [sys.executable, "scripts/troubleshooting.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_page_has_a_row_for_every_reason_and_cause() -> None:
    text = PAGE.read_text()
    assert not [reason.value for reason in Reason if f"| `{reason.value}` |" not in text]
    assert not [cause for cause in FROM_CAUSE if f"| `{cause}` |" not in text]


def test_operator_and_runtime_share_one_list_of_causes() -> None:
    assert set(FROM_CAUSE) == {cause.value for cause in StartCause}
