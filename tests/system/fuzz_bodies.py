"""Random request bodies for the generation endpoints, most of them wrong in one known way, some right but extreme.

The same seed gives the same bodies. Each says whether it must be refused, and which field the refusal must name;
`complaint` compares that with the answer. Sent to the server over a fake engine, and to a running one.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

PATHS = ("/v1/completions", "/v1/chat/completions")
_TEXTS = ("Hello", "naïve 👋🏽", "漢字かな", "e\u0301", "line\nline", "\x00", " ", "a" * 200)
_INTEGERS = (
    "n", "best_of", "top_k", "seed", "max_tokens", "min_tokens", "prompt_logprobs", "truncate_prompt_tokens",
    "priority", "stream_interval",
)  # fmt: skip
_NUMBERS = (
    "temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty",
    "length_penalty",
)  # fmt: skip
_SWITCHES = (
    "stream", "echo", "ignore_eos", "include_stop_str_in_output", "use_beam_search", "early_stopping",
    "skip_special_tokens", "spaces_between_special_tokens", "add_special_tokens", "return_token_ids",
    "return_tokens_as_token_ids",
)  # fmt: skip
_LISTS = ("stop_token_ids", "allowed_token_ids", "bad_words")
_UNAVAILABLE = ("structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "lora_request")
_OUT_OF_RANGE: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("temperature", (-1, 2.1, 1e300, -1e-9)),
    ("top_p", (0, -0.5, 1.0001, 1e18)),
    ("min_p", (-0.1, 1.5)),
    ("top_k", (-2, -(2**62))),
    ("n", (0, -1, 2**40)),
    ("presence_penalty", (-2.1, 2.1, 1e99)),
    ("frequency_penalty", (-2.1, 2.1, 1e99)),
    ("repetition_penalty", (0, -1, 0.009, 101, 1e308)),
    ("length_penalty", (10.5, -11, 2000.0, -2000.0, 1e308)),
    ("seed", (2**63, -(2**63) - 1, 2**100)),
    ("stop_token_ids", (list(range(129)),)),
    ("bad_words", (["x"] * 257, ["x" * 129])),
    ("min_tokens", (-1, 2**50)),
    ("max_tokens", (-1, -(2**50))),
    ("prompt_logprobs", (-2, 10_000)),
    ("logit_bias", ({"-1": 1}, {"99999999": 1}, {"x": 1}, {"1e3": 1}, {"1": "x"}, {str(i): 1 for i in range(1025)})),
    ("stop", ("", ["ok", ""], ["x"] * 100)),
    ("allowed_token_ids", ([], [-1], [2**40])),
    ("cache_salt", ("", "a/b", "x" * 1000)),
    ("stream_interval", (0, -1)),
    ("request_id", ("", "x" * 1000, "é")),
    ("response_format", ({"type": "json_object"}, {}, [], "json", 3)),
)
_EXTREMES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("length_penalty", (-10, 10, 2000.0, -2000.0, 1e308, -1e308, 5e-324)),
    ("logit_bias", ({str(i): 100 for i in range(300)}, {str(i): 1e308 for i in range(5)}, {"0": -1e308})),
    ("repetition_penalty", (5e-324, 1e-30, 1e30, 1e308)),
    ("temperature", (5e-324, 1e-30)),
    ("top_p", (5e-324, 1e-12)),
    ("top_k", (2**31, 2**63 - 1)),
    ("n", (8, 129, 100_000, 2**31, 2**63)),
    ("best_of", (8, 129, 2**31, 2**63)),
    ("seed", (2**31, -(2**63), 2**63 - 1, 2**63, 2**64, 2**100)),
    ("logprobs", (20, 2**31, 2**63)),
    ("priority", (2**31, -(2**63), 2**63 - 1, 2**70)),
    ("min_tokens", (2, 2**31, 2**63)),
    ("truncate_prompt_tokens", (1, 2**31, 2**63)),
    ("stream_interval", (2**31, 2**63)),
    ("stop_token_ids", (list(range(128)), list(range(10_000)), [2**31], [2**63 - 1])),
    ("allowed_token_ids", ([0], list(range(2000)), [2**31])),
    ("bad_words", (["x"] * 100, ["word " * 500], ["\x00"])),
    ("stop", (["a" * 10_000], ["\x00"])),
    ("use_beam_search", (True,)),
    ("prompt_logprobs", (0, 20)),
)
"""Values of the right type at the ends of their range: served or refused, but never a failure of the server."""
_RAW_NUMBERS = (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 400, b"-" + b"9" * 5000)
_BAD_UTF8 = (b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf")


@dataclass(frozen=True, slots=True)
class FuzzBody:
    """`refused`: must get a 4xx, or must not; None: either is right. `field`: what the error must name."""

    path: str
    data: bytes
    refused: bool | None = None
    field: str | None = None


def fuzz_bodies(count: int, seed: int = 0, context: int = 2048) -> Iterator[FuzzBody]:
    """`count` bodies. `context`: the model's context, to make prompts that are too long for it."""
    source = random.Random(seed)
    makers: tuple[Callable[[random.Random], FuzzBody], ...] = (
        _wrong_type,
        _wrong_type,
        _out_of_range,
        _out_of_range,
        _odd_number,
        _bad_utf8,
        _deep,
        _unknown_model,
        _not_available,
        _cut,
        _flipped,
        _random_fields,
        _right,
        _extreme,
        _extreme_beams,
        lambda source: _too_long(source, context),
    )
    for _ in range(count):
        yield source.choice(makers)(source)


def _base(source: random.Random) -> tuple[str, dict[str, Any]]:
    """A body that is right."""
    text = source.choice(_TEXTS)
    if source.random() < 0.5:
        return PATHS[0], {"prompt": text, "max_tokens": 2}
    return PATHS[1], {"messages": [{"role": "user", "content": text}], "max_tokens": 2}


def _made(path: str, body: dict[str, Any], refused: bool | None, field: str | None = None) -> FuzzBody:
    return FuzzBody(path, json.dumps(body, ensure_ascii=False).encode(), refused, field)


def _wrong_type(source: random.Random) -> FuzzBody:
    path, body = _base(source)
    kinds: tuple[tuple[tuple[str, ...], tuple[Any, ...]], ...] = (
        (_INTEGERS, ("1", 1.5, [], {}, True, [1])),
        (_NUMBERS, ("0.5", [], {}, True)),
        (_SWITCHES, ("true", 1, 0.0, [], {})),
        (_LISTS, (3, "x", {}, True, [[]], [{}])),
        (("stop",), (1, {}, [1], [["x"]], True)),
        (("logit_bias",), (1, "x", [1], True)),
        (("stream_options",), (1, "x", [1], True)),
        (("model", "request_id", "cache_salt"), (1, [], {}, True)),
        (("prompt",) if path == PATHS[0] else ("messages",), (1, {}, True, [{}], [None], [[1.5]], None)),
    )
    names, values = source.choice(kinds)
    field = source.choice(names)
    body[field] = source.choice(values)
    return _made(path, body, True, field)


def _out_of_range(source: random.Random) -> FuzzBody:
    path, body = _base(source)
    field, values = source.choice(_OUT_OF_RANGE)
    body[field] = source.choice(values)
    return _made(path, body, True, field)


def _odd_number(source: random.Random) -> FuzzBody:
    path, body = _base(source)
    field = source.choice(_NUMBERS + _INTEGERS)
    body[field] = "@"
    data = json.dumps(body).encode().replace(b'"@"', source.choice(_RAW_NUMBERS))
    return FuzzBody(path, data, True, field)


def _bad_utf8(source: random.Random) -> FuzzBody:
    path, body = _base(source)
    field = "prompt" if path == PATHS[0] else "messages"
    body[field] = "@" if path == PATHS[0] else [{"role": "user", "content": "@"}]
    bad = source.choice((*_BAD_UTF8, b"\\ud800", b"\\udc00x"))
    data = json.dumps(body).encode().replace(b"@", b"ok " + bad)
    return FuzzBody(path, data, True, field)


def _deep(source: random.Random) -> FuzzBody:
    path, body = _base(source)
    field = source.choice(("prompt", "messages", "stop", "unknown", "chat_template_kwargs", "response_format"))
    body[field] = "@"
    opening, closing = source.choice(((b"[", b"]"), (b'{"a":', b"}")))
    depth = source.choice((100, 2_000, 50_000))
    nested = opening * depth + b"1" + closing * depth
    return FuzzBody(path, json.dumps(body).encode().replace(b'"@"', nested))


def _unknown_model(source: random.Random) -> FuzzBody:
    path, body = _base(source)
    body["model"] = source.choice(("gpt-4", "", "../../etc/passwd", "x" * 5000, "👋"))
    return _made(path, body, True, "model")


def _not_available(source: random.Random) -> FuzzBody:
    path, body = _base(source)
    field = source.choice(_UNAVAILABLE if path == PATHS[0] else (*_UNAVAILABLE, "tools", "functions"))
    body[field] = source.choice(([], {}, "x", 1, [{"type": "function"}]))
    return _made(path, body, True, field)


def _cut(source: random.Random) -> FuzzBody:
    path, body = _base(source)
    data = json.dumps(body).encode()
    return FuzzBody(path, data[: source.randrange(len(data))], True)


def _flipped(source: random.Random) -> FuzzBody:
    """A completion: without its max_tokens it gets 16, where a chat would get the whole context."""
    path, body = PATHS[0], {"prompt": source.choice(_TEXTS), "max_tokens": 2}
    data = bytearray(json.dumps(body).encode())
    for _ in range(source.randint(1, 4)):
        data[source.randrange(len(data))] = source.randrange(256)
    return FuzzBody(path, bytes(data))


def _random_fields(source: random.Random) -> FuzzBody:
    """Any value for some known fields at once."""
    path, body = _base(source)
    for field in source.sample(_INTEGERS + _NUMBERS + _SWITCHES + _LISTS, source.randint(1, 5)):
        body[field] = source.choice((0, 1, 2, -1, 0.5, True, False, None, "x", [], [1], 2**63, -(2**63), 1e30))
    body["max_tokens"] = 2
    return _made(path, body, None)


def _right(source: random.Random) -> FuzzBody:
    """Right fields with right values."""
    path, body = _base(source)
    values: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("temperature", (0, 0.001, 1, 2.0, None)),
        ("top_p", (0.1, 1)),
        ("top_k", (-1, 0, 1, 50, 2**40)),
        ("min_p", (0, 0.2, 1)),
        ("seed", (-1, 0, 2**63 - 1)),
        ("stop", ("x", ["a", "b"], [])),
        ("stream", (True, False)),
        ("logit_bias", ({"5": 100, "7": -1e9}, {})),
        ("presence_penalty", (-2, 2)),
        ("repetition_penalty", (0.5, 1.5)),
        ("echo", (True, False)),
        ("user", ("someone", 3)),
        ("prompt_truncation", ("unknown field",)),
    )
    for field, choices in source.sample(values, source.randint(0, 6)):
        body[field] = source.choice(choices)
    return _made(path, body, False)


def _extreme(source: random.Random) -> FuzzBody:
    """Right types, values at the ends of their range."""
    path, body = _base(source)
    for field, values in source.sample(_EXTREMES, source.randint(1, 4)):
        body[field] = source.choice(values)
    return _made(path, body, None)


def _extreme_beams(source: random.Random) -> FuzzBody:
    """Beam search is where a length penalty is computed with."""
    path, body = _base(source)
    body |= {"use_beam_search": True, "temperature": 0, "n": 2, "max_tokens": 3, "ignore_eos": source.random() < 0.5}
    body["length_penalty"] = source.choice((0, -1, 2, 10, -10, 2000, -2000, 1e308, -1e308, 2**63))
    return _made(path, body, None)


def _too_long(source: random.Random, context: int) -> FuzzBody:
    path, body = _base(source)
    words = "word " * (context * source.choice((2, 10)))
    match source.choice(("text", "ids", "tokens")):
        case "ids":
            return _made(PATHS[0], {"prompt": [5] * (context + source.choice((0, 1, 100)))}, True, "input_tokens")
        case "tokens":
            body["max_tokens"] = source.choice((context + 1, 2**31, 2**62))
        case _ if path == PATHS[0]:
            body["prompt"] = words
        case _:
            body["messages"] = [{"role": "user", "content": words}]
    return _made(path, body, True, "input_tokens")


def complaint(body: FuzzBody, status: int, text: str) -> str | None:
    """What is wrong with an answer, or None."""
    if status == 200:
        return "accepted" if body.refused else None
    if body.refused is False or not 400 <= status < 500:
        return "status"
    error = json.loads(text)["error"]
    if set(error) != {"message", "type", "param", "code"} or error["code"] != status:
        return "form"
    if len(error["message"]) > 400:
        return "long"
    named = error["param"] or ""
    if body.field is not None and not named.startswith(body.field):
        return "field"
    return None
