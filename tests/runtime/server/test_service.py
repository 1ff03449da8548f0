import pytest

from octavo_runtime.server.service import clean_id


@pytest.mark.parametrize("text", ["a", "call-7", "x" * 128, "a b"])
def test_plain_ids_are_kept(text):
    assert clean_id(text) == text


@pytest.mark.parametrize("text", [None, "", "x" * 129, "a\r\nSet-Cookie: x", "é", "\0"])
def test_ids_that_do_not_fit_headers_and_logs_are_dropped(text):
    assert clean_id(text) is None


async def test_wrong_priority_header_is_refused(serve):
    served = await serve()
    for value in ("high", str(2**70)):
        status, reply = await served.post("/v1/completions", {"prompt": "a"}, headers={"X-Vllm-Priority": value})
        assert (status, reply["error"]["param"]) == (400, "X-Vllm-Priority")
