from typing import Any

import pytest

from octavo_operator.model.http_get import Span
from octavo_operator.model.hub import Hub, Place, clean_token, is_commit
from octavo_operator.model.problem import ModelProblem
from octavo_operator.reasons import Reason

TINY = "org/tiny"
TOKEN = "hf_verysecret"


async def problem_of(hub: Hub, place: Place, revision: str | None = None) -> ModelProblem:
    with pytest.raises(ModelProblem) as caught:
        await hub.revision(place, revision)
    assert TOKEN not in caught.value.message
    return caught.value


async def test_a_branch_is_a_commit_with_its_files(hub: Hub) -> None:
    revision = await hub.revision(hub.place(TINY), None)
    assert is_commit(revision.commit)
    files = {file.path: file for file in revision.files}
    assert set(files) == {"config.json", "tokenizer.json", "README.md", "model.safetensors"}
    assert files["model.safetensors"].sha256 is not None
    assert files["config.json"].sha256 is None
    assert files["README.md"].size == len("# tiny")


async def test_a_commit_is_asked_for_and_has_to_exist(hub: Hub) -> None:
    place = hub.place(TINY)
    commit = (await hub.revision(place, "next")).commit
    assert commit != (await hub.revision(place, "main")).commit
    assert (await hub.revision(place, commit)).commit == commit
    problem = await problem_of(hub, place, "0" * 40)
    assert problem.reason is Reason.REVISION_NOT_FOUND


async def test_a_missing_revision_is_told_from_a_missing_model(hub: Hub) -> None:
    problem = await problem_of(hub, hub.place(TINY), "v9/with slash")
    assert (problem.reason, problem.retry_after) == (Reason.REVISION_NOT_FOUND, None)
    assert "v9/with slash" in problem.message
    assert "spec.model.revision" in problem.message


@pytest.mark.parametrize(("token", "hint"), [(None, "needs spec.model.credentials"), (TOKEN, "may not see it")])
async def test_a_missing_model_names_the_field_with_and_without_a_token(hub: Hub, token: str | None, hint: str) -> None:
    problem = await problem_of(hub, hub.place("org/none", token=token))
    assert problem.reason is Reason.MODEL_NOT_FOUND
    assert "spec.model.uri" in problem.message
    assert hint in problem.message


@pytest.mark.parametrize(("token", "hint"), [(None, "name a Secret"), ("hf_other", "another token")])
async def test_a_gated_model_is_denied_without_its_token(hub: Hub, served: Any, token: str | None, hint: str) -> None:
    served.mirror.behave(TINY, token=TOKEN)
    problem = await problem_of(hub, hub.place(TINY, token=token))
    assert problem.reason is Reason.MODEL_ACCESS_DENIED
    assert hint in problem.message
    assert await hub.revision(hub.place(TINY, token=f"{TOKEN}\n"), None)


@pytest.mark.parametrize(
    ("behaviour", "reason", "retry_after"),
    [
        ({"status": 401}, Reason.MODEL_ACCESS_DENIED, None),
        ({"status": 403}, Reason.MODEL_ACCESS_DENIED, None),
        ({"status": 404}, Reason.MODEL_NOT_FOUND, None),
        ({"status": 429}, Reason.MODEL_RATE_LIMITED, None),
        ({"status": 429, "retry_after": "7"}, Reason.MODEL_RATE_LIMITED, 7.0),
        ({"status": 429, "retry_after": "Mon, 12 Jan 1970 13:47:10 GMT"}, Reason.MODEL_RATE_LIMITED, 30.0),
        ({"status": 500}, Reason.HUB_UNREACHABLE, None),
        ({"status": 503}, Reason.HUB_UNREACHABLE, None),
        ({"delay_seconds": 30}, Reason.HUB_UNREACHABLE, None),
    ],
)
async def test_what_the_hub_answers_becomes_a_reason(
    hub: Hub, served: Any, behaviour: dict[str, Any], reason: Reason, retry_after: float | None
) -> None:
    served.mirror.behave(TINY, **behaviour)
    problem = await problem_of(hub, hub.place(TINY, token=TOKEN))
    assert (problem.reason, problem.retry_after) == (reason, retry_after)


async def test_a_file_is_read_whole_and_in_part(hub: Hub) -> None:
    place = hub.place(TINY)
    commit = (await hub.revision(place, None)).commit
    whole = await hub.read(place, commit, "config.json")
    assert whole.startswith(b"{")
    assert await hub.read(place, commit, "config.json", Span(5, 4)) == whole[5:9]
    assert await hub.read(place, commit, "config.json", Span(len(whole) - 2, 100)) == whole[-2:]
    assert await hub.read(place, commit, "config.json", Span(len(whole), 10)) == b""


async def test_a_file_that_is_listed_but_not_there_is_a_damaged_model(hub: Hub) -> None:
    place = hub.place(TINY)
    commit = (await hub.revision(place, None)).commit
    with pytest.raises(ModelProblem, match=r"gone\.json") as caught:
        await hub.read(place, commit, "gone.json")
    assert caught.value.reason is Reason.MODEL_CORRUPT


async def test_a_file_behind_a_url_tells_its_size(hub: Hub, served: Any) -> None:
    url = f"{served.address}/{TINY}/resolve/main/tokenizer.json"
    answer = await hub.read_url(url, None, Span(0, 1))
    assert (answer.body, answer.total) == (b"{", 2)
    with pytest.raises(ModelProblem) as caught:
        await hub.read_url(f"{served.address}/nothing", None, Span(0, 1))
    assert caught.value.reason is Reason.MODEL_NOT_FOUND


async def test_something_that_is_no_hub_is_named_with_the_field(hub: Hub, served: Any) -> None:
    endpoint = f"{served.address}/{TINY}/resolve/main/tokenizer.json?"
    problem = await problem_of(hub, Place(endpoint, TINY))
    assert problem.reason is Reason.HUB_UNREACHABLE
    assert "spec.model.endpoint" in problem.message


@pytest.mark.parametrize("endpoint", ["huggingface.co", "ftp://host", "https://", "https://user@host", "http://h:port"])
def test_an_endpoint_that_is_no_address_is_refused(hub: Hub, endpoint: str) -> None:
    with pytest.raises(ModelProblem, match=r"spec\.model\.endpoint") as caught:
        hub.place(TINY, endpoint)
    assert caught.value.reason is Reason.SPEC_INVALID


def test_an_endpoint_of_the_spec_goes_before_the_default(hub: Hub) -> None:
    assert hub.place(TINY, "http://mirror:8099/").endpoint == "http://mirror:8099"


def test_a_token_is_taken_without_its_line_break_and_never_shown() -> None:
    assert clean_token(f" {TOKEN}\r\n") == TOKEN
    assert clean_token("\n") is None
    assert TOKEN not in repr(Place("https://h", TINY, TOKEN))
    with pytest.raises(ModelProblem) as caught:
        clean_token(f"{TOKEN}\nhf_second")
    assert caught.value.reason is Reason.MODEL_ACCESS_DENIED
    assert "hf_" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "answer"), [("a" * 40, True), ("A" * 40, False), ("a" * 39, False), ("g" * 40, False)]
)
def test_a_commit_is_40_hex_digits(text: str, answer: bool) -> None:
    assert is_commit(text) is answer
