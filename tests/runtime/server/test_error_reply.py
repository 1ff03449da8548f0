import json

from aiohttp import web

from octavo_runtime.errors import EngineDeadError, InvalidRequestError, QueueFullError
from octavo_runtime.server.error_reply import error_body, error_response


def test_body_has_openai_form():
    status, body = error_body(InvalidRequestError("n is wrong.", "n"))
    assert status == 400
    assert json.loads(body) == {
        "error": {"message": "n is wrong.", "type": "BadRequestError", "param": "n", "code": 400}
    }


def test_long_messages_are_cut():
    assert len(error_body(InvalidRequestError("x" * 10_000))[1]) < 1200


def test_statuses_and_headers():
    assert error_response(QueueFullError("full", 7)).headers["Retry-After"] == "7"
    assert error_response(EngineDeadError("gone")).status == 500
    assert error_response(web.HTTPMethodNotAllowed("GET", ["POST"])).headers["Allow"] == "POST"


def test_the_unexpected_is_hidden(caplog):
    status, body = error_body(RuntimeError("/secret/path"))
    assert (status, b"secret" in body) == (500, False)
    assert "/secret/path" in caplog.text
