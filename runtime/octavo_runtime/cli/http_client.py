"""A small client of a running server, for `chat --url` and `bench --url`: the model's name, and streamed answers.

Standard library only. Whatever goes wrong is a ServerUnreachableError with one sentence.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from octavo_runtime.errors import OctavoError

_TIMEOUT_SECONDS = 600.0


class ServerUnreachableError(OctavoError):
    """The server did not answer, or answered with an error."""


@dataclass(frozen=True, slots=True)
class Client:
    """`url` is the server's address, with or without /v1."""

    url: str
    api_key: str | None = None

    def model_name(self) -> str:
        """The first model that the server offers."""
        models = json.load(self._open("/v1/models", None))["data"]
        if not models:
            raise ServerUnreachableError(f"{self.url} serves no model.")
        return str(models[0]["id"])

    def stream(self, path: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The events of a streamed answer, as they come."""
        with closing(self._open(path, {**body, "stream": True})) as response:
            for line in response:
                data = line.strip().removeprefix(b"data: ")
                if not data or data == b"[DONE]":
                    continue
                event = json.loads(data)
                if "error" in event:
                    raise ServerUnreachableError(f"{self.url} gave up: {event['error'].get('message', event['error'])}")
                yield event

    def _open(self, path: str, body: Mapping[str, Any] | None) -> Any:
        address = self.url.rstrip("/").removesuffix("/v1") + path
        headers = {"Content-Type": "application/json"}
        if self.api_key is not None:
            headers["Authorization"] = f"Bearer {self.api_key}"
        data = None if body is None else json.dumps(body).encode()
        try:
            request = urllib.request.Request(address, data, headers)
            return urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            raise ServerUnreachableError(f"{address} answered {error.code}: {_reason(error)}") from error
        except (OSError, ValueError) as error:
            raise ServerUnreachableError(f"{address} cannot be reached ({error}); check --url.") from error


def _reason(error: urllib.error.HTTPError) -> str:
    text = error.read(10_000).decode("utf-8", errors="replace")
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return text[:200] or str(error.reason)
