"""Talks to a served model: `python chat_client.py http://localhost:8000 "What is the capital of France?"`.

Needs nothing but Python. A key, if the model wants one, comes from the variable OCTAVO_API_KEY. The answer is printed as it
comes, piece by piece.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator


def call(url: str, body: dict[str, object] | None = None) -> Iterator[bytes]:
    """Lines of the reply, as they arrive."""
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("OCTAVO_API_KEY"):  # noqa: TID251
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, headers)
    with urllib.request.urlopen(request, timeout=300) as reply:
        yield from reply


def answer(url: str, question: str) -> Iterator[str]:
    """The answer of the first model that the server names."""
    model = json.loads(b"".join(call(f"{url}/v1/models")))["data"][0]["id"]
    messages = [{"role": "user", "content": question}]
    body = {"model": model, "messages": messages, "temperature": 0, "max_tokens": 256, "stream": True}
    for line in call(f"{url}/v1/chat/completions", body):
        data = line.removeprefix(b"data: ").strip()
        if line.startswith(b"data: ") and data != b"[DONE]":
            for choice in json.loads(data)["choices"]:
                yield choice["delta"].get("content") or ""


def main() -> int:
    """0 when there was an answer."""
    if len(sys.argv) != 3:
        return fail('usage: python chat_client.py URL "QUESTION"')
    url, question = sys.argv[1].rstrip("/"), sys.argv[2]
    try:
        for piece in answer(url, question):
            sys.stdout.write(piece)
            sys.stdout.flush()
    except urllib.error.HTTPError as error:
        return fail(f"{error.code}: {error.read().decode(errors='replace')}")
    except urllib.error.URLError as error:
        return fail(f"{url} does not answer: {error.reason}")
    sys.stdout.write("\n")
    return 0


def fail(message: str) -> int:
    """One line on standard error."""
    sys.stderr.write(f"{message}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
