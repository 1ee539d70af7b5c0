"""Conversations with a model over a real connection."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.chat.traffic import Traffic
from assay.config import RunConfig
from assay.contracts.json_text import dump_json, parse_json
from assay.errors import ConfigError, EndpointError
from assay.targets.catalog import build_target
from assay.targets.contract import Work

if TYPE_CHECKING:
    from tests.conftest import Loopback

USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 15},
}
ITEM_COLUMNS = {"item_id": pl.String, "turn": pl.Int32, "query": pl.String, "messages_json": pl.String}

pytestmark = pytest.mark.usefixtures("api_key")


def build_items(*rows: tuple[str, int, str | None, list[Any] | None]) -> pl.DataFrame:
    written = [(*row[:3], None if row[3] is None else dump_json(row[3])) for row in rows]
    return pl.DataFrame(written, schema=ITEM_COLUMNS, orient="row")


def ask(item_id: str, *queries: str | None) -> list[tuple[str, int, str | None, None]]:
    return [(item_id, turn, query, None) for turn, query in enumerate(queries)]


async def fetch(
    loopback: Loopback,
    items: pl.DataFrame,
    *,
    concurrency: int = 4,
    trials: int = 1,
    **target: Any,
) -> tuple[pl.DataFrame, list[bool]]:
    endpoint = {"model": "m", "base_url": loopback.base_url}
    asked = {"datasets": ("x",), "target": {"kind": "openai", "endpoint": endpoint, **target}}
    config = RunConfig.model_validate(asked | {"concurrency": concurrency})
    opened = build_target(config, Traffic(config, sleep=no_wait))
    done: list[bool] = []
    try:
        work = Work(Forgetful(), done.append, trials, concurrency)
        return await opened.fetch_samples(items, work), done
    finally:
        await opened.aclose()


class Forgetful:
    """A recorder that knows nothing and keeps nothing."""

    def find(self, kind: str, request: str) -> tuple[str, None]:
        return f"{kind} {request}", None

    def keep(self, key: str, outcome: object) -> None:
        assert key
        assert outcome


async def no_wait(_: float) -> None:
    return None


def list_sent(loopback: Loopback) -> list[list[tuple[str, str]]]:
    return [
        [(entry["role"], entry["content"]) for entry in request["body"]["messages"]]
        for request in loopback.requests
    ]


async def test_turns_are_sent_in_order_with_the_history_so_far(loopback: Loopback) -> None:
    loopback.script([{"reply": "one"}, {"reply": "two"}, {"reply": "three"}])
    samples, done = await fetch(loopback, build_items(*ask("i", "a", "b", "c")), system="be brief")
    full = [
        ("system", "be brief"),
        *[("user", "a"), ("assistant", "one")],
        *[("user", "b"), ("assistant", "two")],
        ("user", "c"),
    ]
    assert list_sent(loopback) == [full[:2], full[:4], full]
    assert samples["output_text"].to_list() == ["one", "two", "three"]
    assert done == [True] * 3


async def test_usage_requests_and_times_land_in_the_row(loopback: Loopback) -> None:
    loopback.script([{"status": 500, "body": ""}], {"reply": "ok", "usage": USAGE})
    samples, _ = await fetch(loopback, build_items(*ask("i", "a")))
    row = samples.row(0, named=True)
    names = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "attempts")
    assert [row[name] for name in names] == [30, 20, 10, 15, 2]
    assert (row["model"], row["finish_reason"], row["from_ledger"], row["trial"]) == ("m", "stop", False, 0)
    assert row["latency_ms"] > 0
    assert row["started_at"] <= row["finished_at"]
    assert row["request_json"] == '{"model":"m","messages":[{"role":"user","content":"a"}]}'
    assert parse_json(row["request_json"]) == loopback.requests[0]["body"]


async def test_failed_turn_skips_the_rest_of_its_conversation_alone(loopback: Loopback) -> None:
    refusal = {"status": 400, "body": {"error": {"message": "too long"}}}
    loopback.script([], match=[("bad", refusal)])
    items = build_items(*ask("i", "a", "bad", "c", "d"), *ask("j", "e"))
    samples, done = await fetch(loopback, items, concurrency=1)
    assert samples["status"].to_list() == ["ok", "error", "skipped", "skipped", "ok"]
    skipped = "turn_skipped"
    assert samples["error_code"].to_list() == [None, "bad_request", skipped, skipped, None]
    assert samples["error_message"].to_list()[1:3] == ["400: too long", "turn 1 of this conversation failed"]
    assert samples["attempts"].to_list() == [1, 1, 0, 0, 1]
    assert samples["request_json"].is_not_null().to_list() == [True, True, False, False, True]
    assert done == [True, False, False, False, True]
    assert len(loopback.requests) == 3


@pytest.mark.parametrize(
    ("body", "code", "part"),
    [
        ("<html>Sign in</html>", "html_body", "<html>Sign in</html>"),
        ({}, "no_choices", "{}"),
        ({"error": {"message": "upstream died"}}, "error_body", "upstream died"),
    ],
)
async def test_dead_target_that_answers_200_gives_error_rows(
    loopback: Loopback, body: Any, code: str, part: str
) -> None:
    loopback.script([], after={"status": 200, "body": body})
    samples, _ = await fetch(loopback, build_items(*ask("i", "a"), *ask("j", "b")))
    assert samples["status"].to_list() == ["error", "error"]
    assert samples["error_code"].to_list() == [code, code]
    assert samples["output_text"].null_count() == 2
    assert part in samples["error_message"][0]


async def test_row_without_query_and_messages_is_an_error(loopback: Loopback) -> None:
    own = [{"role": "assistant", "content": "hello"}]
    samples, _ = await fetch(loopback, build_items(("i", 0, None, None), ("j", 0, " ", own)))
    assert samples["error_code"].to_list() == ["no_query", "no_query"]
    assert loopback.requests == []


async def test_own_messages_are_sent_up_to_the_last_one_of_the_user(loopback: Loopback) -> None:
    text = {"type": "text", "text": "b"}
    own = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [text]},
        {"role": "user", "content": [text]},
        {"role": "assistant", "content": "stored"},
    ]
    await fetch(loopback, build_items(("i", 0, "b", own)), system="first")
    said = [("system", "first"), ("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "b")]
    assert list_sent(loopback) == [said]


async def test_tool_calls_of_an_answer_are_items_in_foundry_form(loopback: Loopback) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"n": 1}'}}
    loopback.script([{"reply": None, "tool_calls": [call], "finish": "tool_calls"}])
    samples, _ = await fetch(loopback, build_items(*ask("i", "a")))
    item = '{"type":"tool_call","tool_call_id":"c","name":"find","arguments":{"n":1}}'
    assert samples["output_text"].to_list() == [""]
    assert samples["tool_calls_json"].to_list() == [f"[{item}]"]
    assert samples["output_items_json"].to_list() == [f'[{{"role":"assistant","content":[{item}]}}]']


async def test_rows_keep_their_order_when_answers_arrive_in_another(loopback: Loopback) -> None:
    second = threading.Event()

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        text = body["messages"][-1]["content"]
        if text == "a":
            second.wait(10)
        if text == "b":
            second.set()
        return {"reply": text}

    loopback.script([], after=answer)
    letters = ["a", "b", "c", "d"]
    rows = [row for letter in letters for row in ask(f"i-{letter}", letter, letter * 2)]
    samples, _ = await fetch(loopback, build_items(*rows), concurrency=2)
    assert samples["output_text"].to_list() == [row[2] for row in rows]
    assert samples["item_id"].to_list() == [row[0] for row in rows]
    assert samples["turn"].to_list() == [0, 1] * 4


async def test_conversations_in_flight_never_exceed_the_concurrency(loopback: Loopback) -> None:
    together = threading.Barrier(3, timeout=10)

    def meet(_: dict[str, Any]) -> dict[str, Any]:
        together.wait()
        return {"reply": "met"}

    loopback.script([meet] * 3)
    rows = [row for place in range(12) for row in ask(f"i{place}", "a", "b")]
    samples, done = await fetch(loopback, build_items(*rows), concurrency=3)
    assert loopback.most_in_flight == 3
    assert samples.height == len(done) == len(loopback.requests) == 24


@pytest.mark.parametrize("status", [401, 404])
async def test_wrong_setup_ends_the_run_within_one_wave(loopback: Loopback, status: int) -> None:
    loopback.script([], after={"status": status, "body": {"error": {"message": "no"}}})
    rows = [row for place in range(100) for row in ask(f"i{place}", "a")]
    with pytest.raises(EndpointError):
        await fetch(loopback, build_items(*rows), concurrency=4)
    assert len(loopback.requests) <= 4


def test_target_without_a_model_names_the_option() -> None:
    for kind in ("openai", "azure"):
        config = RunConfig.model_validate({"datasets": ("x",), "target": {"kind": kind}})
        with pytest.raises(ConfigError, match="--model"):
            build_target(config, Traffic(config))


async def test_an_answer_cut_off_at_the_users_limit_is_an_error_that_keeps_its_text(
    loopback: Loopback,
) -> None:
    loopback.script([{"reply": "half of it", "finish": "length"}])
    samples, done = await fetch(loopback, build_items(*ask("i", "a", "b")), sampling={"max_output_tokens": 4})
    assert samples.select("status", "error_code", "output_text", "output_tokens").rows() == [
        ("error", "truncated", "half of it", 2),
        ("skipped", "turn_skipped", None, None),
    ]
    assert done == [False, False]
    assert len(loopback.requests) == 1


async def test_an_answer_cut_off_at_the_servers_limit_is_asked_for_once_more(loopback: Loopback) -> None:
    loopback.script([{"reply": "half", "finish": "length"}, {"reply": "the whole"}])
    samples, _ = await fetch(loopback, build_items(*ask("i", "a")))
    assert samples.select("status", "output_text", "input_tokens", "attempts").rows() == [
        ("ok", "the whole", 6, 2)
    ]
    assert loopback.requests[1]["body"]["max_tokens"] >= 4096


async def test_trials_hold_every_conversation_anew(loopback: Loopback) -> None:
    loopback.script([], after=lambda body: {"reply": str(len(body["messages"]))})
    samples, done = await fetch(loopback, build_items(*ask("i", "a", "b"), *ask("j", "c")), trials=2)
    assert samples.select("item_id", "trial", "turn", "output_text").rows() == [
        ("i", 0, 0, "1"),
        ("i", 0, 1, "3"),
        ("i", 1, 0, "1"),
        ("i", 1, 1, "3"),
        ("j", 0, 0, "1"),
        ("j", 1, 0, "1"),
    ]
    assert done == [True] * 6
