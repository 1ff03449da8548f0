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
    assert error_response(web.HTTPMethodNotAllowed("GET", ["POST", "DELETE"])).headers["Allow"] == "DELETE,POST"


def test_what_the_router_refuses_has_our_own_types():
    for error, status, kind in (
        (web.HTTPMethodNotAllowed("GET", ["POST"]), 405, "MethodNotAllowedError"),
        (web.HTTPNotFound(), 404, "NotFoundError"),
        (web.HTTPRequestTimeout(), 408, "BadRequestError"),
    ):
        response = error_response(error)
        assert response.status == status
        assert json.loads(response.body)["error"]["type"] == kind


def test_why_the_engine_ended_is_hidden():
    status, body = error_body(EngineDeadError("RuntimeError: cannot map /secret/weights"))
    assert (status, b"secret" in body) == (500, False)


def test_the_unexpected_is_hidden(caplog):
    status, body = error_body(RuntimeError("/secret/path"))
    assert (status, b"secret" in body) == (500, False)
    assert "/secret/path" in caplog.text
