import pytest

from octavo_runtime.engine.cache_demand import worst_case_blocks
from octavo_runtime.server.interfaces import SamplingDefaults
from octavo_runtime.server.service import clean_id

USER = [{"role": "user", "content": "hi"}]


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


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
@pytest.mark.parametrize("width", [{"n": 32}, {"n": 1, "best_of": 32}, {"n": 8, "use_beam_search": True}])
async def test_a_default_length_for_several_sequences_fits_the_cache(serve, path, width):
    served = await serve(defaults=SamplingDefaults(max_tokens=400))
    ready = served.engine.ready
    status, reply = await served.post(path, {"prompt": "hi", "messages": USER, **width})
    assert status == 200, reply
    request = served.engine.seen[-1]
    size = (len(request.prompt_token_ids), request.params.num_sequences, request.params.max_tokens, ready.block_size)
    assert 1 < request.params.max_tokens < 400
    assert worst_case_blocks(*size) <= ready.num_blocks


async def test_a_length_that_was_asked_for_is_not_cut(serve):
    served = await serve()
    await served.complete(n=32, max_tokens=300)
    assert served.engine.seen[-1].params.max_tokens == 300
