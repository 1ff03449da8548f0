"""What a hub's refusals become."""

from pathlib import Path
from typing import Any

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.access import HubAccess
from octavo_runtime.fetch.patience import TryLaterError
from octavo_runtime.fetch.web import Web, retry_after

CACHE = Path("/nowhere")


async def ask(access: HubAccess, path: str = "/api/models/org/tiny") -> Any:
    async with Web.connect(access, "org/tiny", "v1") as web:
        return await web.get_json(path)


@pytest.mark.parametrize(
    ("status", "code", "cause"),
    [
        (404, "RepoNotFound", StartCause.MODEL_NOT_FOUND),
        (401, "RepoNotFound", StartCause.MODEL_NOT_FOUND),
        (404, "RevisionNotFound", StartCause.REVISION_NOT_FOUND),
        (404, "EntryNotFound", StartCause.MODEL_NOT_FOUND),
        (404, "", StartCause.MODEL_NOT_FOUND),
        (403, "GatedRepo", StartCause.MODEL_ACCESS_DENIED),
        (401, "", StartCause.MODEL_ACCESS_DENIED),
        (400, "", StartCause.MODEL_NOT_FOUND),
    ],
)
async def test_what_will_not_pass_is_a_start_error(
    hub: Any, trouble: Any, status: int, code: str, cause: StartCause
) -> None:
    hub.troubles = [trouble("tiny", status, headers={"X-Error-Code": code})]
    with pytest.raises(StartError, match="org/tiny") as caught:
        await ask(hub.access(CACHE))
    assert caught.value.cause is cause


@pytest.mark.parametrize(
    ("status", "cause"),
    [(429, StartCause.MODEL_RATE_LIMITED), (500, StartCause.HUB_UNREACHABLE), (503, StartCause.HUB_UNREACHABLE)],
)
async def test_what_may_pass_says_when_to_try_again(hub: Any, trouble: Any, status: int, cause: StartCause) -> None:
    hub.troubles = [trouble("tiny", status, headers={"Retry-After": "17"})]
    with pytest.raises(TryLaterError) as caught:
        await ask(hub.access(CACHE))
    assert (caught.value.cause, caught.value.retry_after) == (cause, 17)


async def test_a_hub_that_is_away_is_unreachable_and_named() -> None:
    with pytest.raises(TryLaterError, match=r"127\.0\.0\.1:9 is not reachable") as caught:
        await ask(HubAccess("http://user:secret@127.0.0.1:9", CACHE))
    assert caught.value.cause is StartCause.HUB_UNREACHABLE
    assert "secret" not in str(caught.value)


async def test_an_answer_that_is_no_json_is_not_believed(hub: Any) -> None:
    hub.files["page"] = b"<html>"
    with pytest.raises(TryLaterError, match="not JSON"):
        await ask(hub.access(CACHE), "/files/page")


async def test_the_token_goes_to_the_hub_only(hub: Any) -> None:
    hub.files["other"] = b"{}"
    access = hub.access(CACHE, token="secret")
    assert (await ask(access))["sha"]
    async with Web.connect(access, "m") as web, web.get(hub.url + "/files/other", hub=False) as response:
        await response.read()
    assert [authorization for _, _, authorization in hub.asked] == ["Bearer secret", None]
    assert "secret" not in repr(access)


async def test_a_denial_says_whether_there_was_a_token(hub: Any) -> None:
    hub.token = "right"
    for token, said in ((None, "no HF_TOKEN is set"), ("wrong", "HF_TOKEN may not read it")):
        with pytest.raises(StartError, match=said):
            await ask(hub.access(CACHE, token))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30"}, 30),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "999999"}, 3600),
        ({"RateLimit": '"api";r=0;t=55'}, 55),
        ({}, None),
    ],
)
def test_the_time_to_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
