from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.chat.failures import Failure
from assay.chat.jobs import ENDED
from assay.chat.queued import JobModel, QueuedError, open_job_model, read_line
from assay.chat.traffic import Traffic
from assay.config import Endpoint, RunConfig
from assay.contracts.chat import ChatReply, ChatRequest, text_message
from assay.errors import CallError, EndpointError, UndecidedError
from assay.testing.batches import BatchServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.usefixtures("api_key")

QUESTION = ChatRequest((text_message("user", "How far is the moon?"),))
MARKS = {"assay_run": "r", "part": "00001"}


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer() as server:
        yield server


@pytest.fixture
async def model(server: BatchServer) -> AsyncIterator[JobModel]:
    async def sleep(_: float) -> None:
        """Lose no time."""

    traffic = Traffic(RunConfig(datasets=()), sleep=sleep)
    opened = open_job_model(Endpoint(model="gpt-4o", base_url=server.base_url), traffic, "target")
    async with opened:
        yield opened


async def upload(model: JobModel, *names: str) -> str:
    lines = b"".join(model.write_line(name, QUESTION) for name in names or ("a",))
    return await model.desk.upload(io.BytesIO(lines), "requests.jsonl")


async def test_a_model_asked_by_jobs_answers_nothing(model: JobModel, server: BatchServer) -> None:
    with pytest.raises(QueuedError) as raised:
        await model.complete(QUESTION)
    assert (raised.value.code, raised.value.attempts, raised.value.request) == ("queued", 0, QUESTION)
    assert server.requests == []


async def test_a_file_becomes_a_job_and_its_answers_come_back(model: JobModel, server: BatchServer) -> None:
    file_id = await upload(model, "a", "b")
    made = await model.desk.create(file_id, MARKS)
    told = await model.desk.fetch(made.job_id)
    assert (made.status in ENDED, told.status, told.done, told.error_id) == (False, "completed", 2, None)
    into = io.BytesIO(b"left from before, and longer than what comes" * 100)
    await model.desk.download(told.output_id or "", into)
    found = [read_line(line) for line in into.getvalue().splitlines(keepends=True)]
    assert [each and each[0] for each in found] == ["a", "b"]
    assert server.jobs[0]["metadata"] == MARKS
    assert json.loads(server.files[file_id].splitlines()[0]) == {
        "custom_id": "a",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "gpt-4o", "messages": [{"role": "user", "content": "How far is the moon?"}]},
    }


async def test_a_job_is_found_by_its_file_or_by_its_marks(model: JobModel, server: BatchServer) -> None:
    file_id = await upload(model)
    assert await model.desk.find(file_id, MARKS, 0) is None
    made = await model.desk.create(file_id, MARKS)
    for number in range(120):  # more than a page
        server.jobs.append({**server.jobs[0], "id": f"b{number}", "input_file_id": "f", "metadata": None})
    by_file = await model.desk.find(file_id, {"assay_run": "another"}, 0)
    by_marks = await model.desk.find("another", MARKS, 0)
    assert [each and each.job_id for each in (by_file, by_marks)] == [made.job_id] * 2
    assert await model.desk.find(file_id, MARKS, 5_000_000_000) is None  # it would be younger


async def test_a_job_is_made_again_after_a_refusal_and_after_nothing_else(
    model: JobModel, server: BatchServer
) -> None:
    file_id = await upload(model)
    server.plans.extend([{"refuse": 429}, {"refuse": 429}, {}, {"refuse": 500}, {"cut": True}])
    await model.desk.create(file_id, MARKS)
    for _ in range(2):
        with pytest.raises(UndecidedError, match="repeat the command"):
            await model.desk.create(file_id, MARKS)
    assert (len(server.jobs), len(server.plans)) == (2, 0)


async def test_what_the_server_does_not_take_is_told_in_its_words(
    model: JobModel, server: BatchServer
) -> None:
    server.plans.append({"refuse": 400, "message": "gpt-4o has no batch"})
    with pytest.raises(EndpointError, match="gpt-4o has no batch"):
        await model.desk.create(await upload(model), MARKS)


async def test_a_file_is_waited_for_until_it_is_checked(model: JobModel, server: BatchServer) -> None:
    server.states.extend(["pending", "running", "processed"])
    assert await upload(model) == "file-1"
    server.states.extend(["pending", "error"])
    with pytest.raises(UndecidedError, match="state error"):
        await upload(model)


async def test_a_job_that_the_server_does_not_know_has_failed(model: JobModel) -> None:
    told = await model.desk.fetch("batch_9")
    assert (told.status, told.output_id) == ("failed", None)
    assert "does not know it" in told.message
    with pytest.raises(UndecidedError, match="no file file-9 any more"):
        await model.desk.download("file-9", io.BytesIO())


async def test_a_wrong_key_is_told_with_its_variable(
    model: JobModel, server: BatchServer, api_key: str
) -> None:
    server.key = "another"
    with pytest.raises(EndpointError, match="OPENAI_API_KEY") as raised:
        await model.desk.fetch("batch_1")
    assert api_key not in str(raised.value)


def build_line(status: int | None, body: object = None, error: object = None) -> Any:
    response = None if status is None else {"status_code": status, "body": body}
    return {"custom_id": "a", "response": response, "error": error}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (build_line(None, error={"code": "batch_expired", "message": "late"}), "job_expired"),
        (build_line(None, error={"code": "batch_cancelled", "message": "x"}), "job_cancelled"),
        (build_line(None, error={"code": "other", "message": "x"}), "server_error"),
        (build_line(None), "server_error"),
        (build_line(500, {"error": {"message": "x"}}), "server_error"),
        (build_line(429, {"error": {"message": "x"}}), "rate_limited"),
        (build_line(400, {"error": {"message": "x", "code": "content_filter"}}), "content_filter"),
        (build_line(200, {"choices": []}), "no_choices"),
        (build_line(200, None), "no_choices"),
    ],
)
async def test_a_line_without_an_answer_has_a_code(model: JobModel, line: Any, code: str) -> None:
    answer = model.read_answer(line)
    assert isinstance(answer, Failure)
    assert answer.code == code


async def test_an_answer_costs_half_of_what_a_call_costs(model: JobModel) -> None:
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "model": "gpt-4o"}
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000}
    reply = model.read_answer(build_line(200, {**body, "usage": usage}))
    assert isinstance(reply, ChatReply)
    assert reply.usage.cost_usd == pytest.approx((2.5 + 10) / 2)


async def test_what_is_cut_off_twice_is_truncated_and_paid_twice(model: JobModel) -> None:
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]}
    cut = model.read_answer(build_line(200, {**body, "usage": {"completion_tokens": 3}}))
    assert isinstance(cut, ChatReply)
    first, room = await model.conclude([cut], 800, fixed=False)
    assert isinstance(first, CallError)
    assert (first.code, room) == ("queued", 4096)
    second, room = await model.conclude([cut, cut], 800, fixed=False)
    assert isinstance(second, CallError)
    assert second.reply is not None
    assert (second.code, room, second.reply.usage.output_tokens) == ("truncated", 0, 6)


@pytest.mark.parametrize("line", [b'{"custom_id": "a", "resp', b"[]\n", b'{"id": 1}\n', b"\n"])
def test_a_torn_line_is_no_line(line: bytes) -> None:
    assert read_line(line) is None
