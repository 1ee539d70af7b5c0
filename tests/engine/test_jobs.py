from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import assay
from assay.contracts.tables import SAMPLES, SCORES
from assay.engine.jobs import (
    check_jobs,
    collect_run,
    confirm_submission,
    find_cut_short,
    look_at_jobs,
    open_submitted,
    submit_run,
)
from assay.engine.prepare import prepare
from assay.engine.queueing import Split
from assay.engine.tools import Silent
from assay.errors import ConfigError, EndpointError, UndecidedError
from assay.settings import make_config
from assay.store.jobs import read_book
from assay.store.ledger import read_calls
from assay.store.parts import scan_parts
from assay.testing.batches import BatchServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import polars as pl

    from assay.config import RunConfig
    from assay.engine.clerk import Standing
    from assay.engine.prepare import Prepared

pytestmark = pytest.mark.usefixtures("api_key")

VERDICT = json.dumps({"reason": "to the point", "score": 4})
BUSY = {"status": 429, "body": {"error": {"message": "too many", "code": "rate_limit_exceeded"}}}


def answer(body: dict[str, Any]) -> dict[str, Any]:
    return {"reply": VERDICT if body["model"] == "judge" else "Paris"}


class Desk:
    """A dataset, a store and a server with jobs."""

    def __init__(self, server: BatchServer, data: Path, store: Path) -> None:
        self.server, self.data, self.store = server, data, store

    def configure(self, **settings: Any) -> RunConfig:
        usual = {"model": "gpt-4o", "base_url": self.server.base_url, "evaluators": "ExactMatch"}
        given: Any = {**usual, **settings, "store": str(self.store)}
        return make_config([str(self.data)], given)

    def submit(self, **settings: Any) -> Prepared:
        split = settings.pop("split", None)
        prepared = prepare(self.configure(**settings))
        submit_run(prepared, Silent(), split)
        return prepared

    def collect(self, prepared: Prepared, **how: Any) -> Standing:
        return collect_run(open_submitted(prepared.folder.run_id, str(self.store)), Silent(), **how)

    def finish(self, prepared: Prepared, rounds: int) -> int:
        """Collect until the run ends, which takes so many times, and return the exit code."""
        for _ in range(rounds - 1):
            assert self.collect(prepared).outcome is None
        outcome = self.collect(prepared).outcome
        assert outcome is not None
        assert outcome.status == "complete"
        return outcome.exit_code

    @property
    def asked(self) -> list[str]:
        return [request["body"]["messages"][-1]["content"] for request in self.server.requests]


def samples_of(prepared: Prepared) -> pl.DataFrame:
    return scan_parts(prepared.folder, SAMPLES).collect()


def scores_of(prepared: Prepared) -> pl.DataFrame:
    return scan_parts(prepared.folder, SCORES).collect()


@pytest.fixture
def desk(tmp_path: Path, write_rows: Callable[..., Path]) -> Iterator[Desk]:
    with BatchServer(after=answer) as server:
        rows = [{"id": name, "query": f"q {name}", "ground_truth": "Paris"} for name in "abcd"]
        yield Desk(server, write_rows(*rows), tmp_path / "store")


def test_a_run_by_jobs_gives_the_tables_of_any_run_at_half_the_price(desk: Desk) -> None:
    settings: Any = {"evaluators": "ExactMatch,Relevance", "judge": "judge"}
    settings["judge_base_url"] = desk.server.base_url
    run = assay.run(desk.data, model="gpt-4o", base_url=desk.server.base_url, store=desk.store, **settings)
    prepared = desk.submit(**settings)
    assert desk.finish(prepared, rounds=2) == 0
    own = {"run_id", "latency_ms", "started_at", "finished_at", "cost_usd"}
    for theirs, ours in ((run.samples, samples_of(prepared)), (run.scores, scores_of(prepared))):
        assert ours.drop(own, strict=False).equals(theirs.drop(own, strict=False))
        assert ours["latency_ms"].null_count() == ours.height
    prices = zip(run.samples["cost_usd"], samples_of(prepared)["cost_usd"], strict=True)
    assert all(half == pytest.approx(whole / 2) and half > 0 for whole, half in prices)
    assert [job["metadata"]["assay_run"] for job in desk.server.jobs] == [prepared.folder.run_id] * 2


@pytest.mark.parametrize(("split", "sizes"), [(Split(3), [3, 1]), (Split(size=370), [2, 2])])
def test_jobs_are_split_by_lines_and_by_bytes(desk: Desk, split: Split, sizes: list[int]) -> None:
    prepared = desk.submit(split=split)
    assert [job["request_counts"]["total"] for job in desk.server.jobs] == sizes
    assert desk.finish(prepared, rounds=1) == 0
    assert sorted(desk.asked) == ["q a", "q b", "q c", "q d"]


@pytest.mark.parametrize("plan", [{"status": "cancelled"}, {}], ids=str)
def test_only_what_a_job_left_out_is_sent_again(desk: Desk, plan: dict[str, Any]) -> None:
    desk.server.plans.append({**plan, "answered": 3})
    prepared = desk.submit()
    assert desk.finish(prepared, rounds=2) == 0
    assert desk.asked == ["q a", "q b", "q c", "q d"]
    assert samples_of(prepared)["attempts"].to_list() == [1, 1, 1, 2]


def test_lines_in_any_order_repeated_torn_or_unknown_are_handled(desk: Desk) -> None:
    def edit(lines: list[str]) -> list[str]:
        unknown = lines[0].replace('"custom_id": "0-', '"custom_id": "7-')
        return [unknown, lines[2], "\n", lines[1], lines[2], lines[0], lines[3][:50]]

    desk.server.plans.append({"edit": edit})
    prepared = desk.submit()
    assert desk.finish(prepared, rounds=2) == 0
    assert desk.asked == ["q a", "q b", "q c", "q d", "q d"]
    keys = [key for key, entry in read_calls(prepared.folder) if "job" in entry]
    assert len(keys) == len(set(keys)) == 4


def test_a_request_is_sent_three_times_and_then_an_error_of_its_row(desk: Desk) -> None:
    desk.server.script([], after=answer, match=[("q c", BUSY)])
    prepared = desk.submit()
    assert desk.finish(prepared, rounds=3) == 3
    assert desk.asked.count("q c") == 3
    assert len(desk.asked) == 6
    assert samples_of(prepared)["error_code"].to_list() == [None, None, "rate_limited", None]
    assert desk.finish(prepared, rounds=1) == 3
    assert len(desk.asked) == 6


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"message": "filtered", "code": "content_filter"}, "content_filter"),
        ({"message": "no such thing", "type": "invalid_request_error"}, "bad_request"),
    ],
)
def test_a_lasting_failure_is_not_sent_again(desk: Desk, error: dict[str, Any], code: str) -> None:
    desk.server.script([], after=answer, match=[("q b", {"status": 400, "body": {"error": error}})])
    prepared = desk.submit()
    assert desk.finish(prepared, rounds=1) == 3
    assert samples_of(prepared)["error_code"].to_list() == [None, code, None, None]
    assert scores_of(prepared)["status"].to_list() == ["ok", "error", "ok", "ok"]


def test_a_parameter_that_is_refused_is_left_out_of_the_next_job(desk: Desk) -> None:
    said = "Unsupported value: 'temperature' does not support 0.5 with this model."
    refusal = {"status": 400, "body": {"error": {"message": said, "param": "temperature"}}}

    def pick(body: dict[str, Any]) -> dict[str, Any]:
        return refusal if "temperature" in body else {"reply": "Paris"}

    desk.server.script([], after=pick)
    prepared = desk.submit(temperature=0.5)
    assert desk.finish(prepared, rounds=2) == 0
    assert samples_of(prepared)["attempts"].to_list() == [1] * 4


def test_an_answer_that_was_cut_off_is_asked_for_with_more_room(desk: Desk) -> None:
    def pick(body: dict[str, Any]) -> dict[str, Any]:
        return {"reply": "Paris", "finish": "stop" if body.get("max_tokens", 0) >= 4096 else "length"}

    desk.server.script([], after=pick)
    prepared = desk.submit()
    assert desk.finish(prepared, rounds=2) == 0
    assert samples_of(prepared).select("attempts", "input_tokens").unique().rows() == [(2, 6)]


def test_a_job_that_failed_as_a_whole_is_told_and_sent_again_by_the_next_collect(desk: Desk) -> None:
    said = [{"code": "token_limit_exceeded", "message": "too many tokens are enqueued", "line": None}]
    desk.server.plans.append({"status": "failed", "errors": said})
    prepared = desk.submit()
    with pytest.raises(UndecidedError, match=r"batch_1 failed .* token_limit_exceeded: too many tokens"):
        desk.collect(prepared)
    assert desk.finish(prepared, rounds=2) == 0
    assert len(desk.asked) == 4


def test_while_a_job_is_under_way_nothing_changes(desk: Desk) -> None:
    desk.server.plans.extend([{}, {"held": True}])
    prepared = desk.submit(split=Split(2))
    before = sorted(path.name for path in prepared.folder.path.rglob("*"))
    assert len(desk.collect(prepared).jobs) == 2
    assert sorted(path.name for path in prepared.folder.path.rglob("*")) == before
    assert [job.status for job in look_at_jobs(prepared)] == ["completed", "in_progress"]
    desk.server.release()
    assert desk.finish(prepared, rounds=1) == 0


def test_a_job_that_may_have_been_made_is_found_and_not_made_again(desk: Desk) -> None:
    desk.server.plans.extend([{}, {"cut": True}])
    config = desk.configure()
    with pytest.raises(UndecidedError, match="repeat the command"):
        submit_run(prepare(config), Silent(), Split(1))
    again = find_cut_short(config)
    assert again is not None
    assert find_cut_short(desk.configure(temperature=1)) is None
    submit_run(again, Silent(), Split(1))
    submit_run(again, Silent(), Split(1))  # as nobody was told of the jobs
    assert len(desk.server.jobs) == 4
    confirm_submission(again)
    assert find_cut_short(config) is None
    assert desk.finish(again, rounds=1) == 0
    assert sorted(desk.asked) == ["q a", "q b", "q c", "q d"]


def test_collecting_once_more_what_was_kept_doubles_nothing(desk: Desk, tmp_path: Path) -> None:
    desk.server.plans.append({"status": "expired", "answered": 2})
    prepared = desk.submit()
    shutil.copytree(prepared.folder.path / "batch", tmp_path / "before")
    desk.collect(prepared)
    calls = list(read_calls(prepared.folder))
    shutil.rmtree(prepared.folder.path / "batch")  # as if the process had died before the last step
    shutil.copytree(tmp_path / "before", prepared.folder.path / "batch")
    desk.server.jobs.pop()
    desk.collect(prepared)
    assert list(read_calls(prepared.folder)) == calls
    assert desk.finish(prepared, rounds=1) == 0
    assert samples_of(prepared)["attempts"].to_list() == [1, 1, 2, 2]


def test_a_run_with_jobs_under_way_is_not_resumed(desk: Desk) -> None:
    prepared = desk.submit()
    with pytest.raises(ConfigError, match="assay batch collect"):
        assay.run(resume=prepared.folder.run_id, store=desk.store)
    confirm_submission(prepared)
    with pytest.raises(ConfigError, match="has batch jobs already"):
        submit_run(prepared, Silent())


def test_without_new_jobs_the_rest_is_skipped_and_can_be_asked_at_once(desk: Desk) -> None:
    desk.server.plans.append({"status": "expired", "answered": 1})
    prepared = desk.submit()
    outcome = desk.collect(prepared, sends=False).outcome
    assert outcome is not None
    assert (outcome.status, outcome.exit_code) == ("partial", 3)
    assert "3 requests have no answer" in outcome.message
    assert samples_of(prepared)["status"].to_list() == ["ok", "skipped", "skipped", "skipped"]
    assert assay.run(resume=prepared.folder.run_id, store=desk.store).exit_code == 0
    assert sorted(desk.asked) == ["q a", "q b", "q c", "q d"]


def test_every_turn_of_a_conversation_takes_a_round(desk: Desk) -> None:
    turns = [{"prompt": text, "expected_response": "Paris"} for text in ("one", "two")]
    desk.data = desk.data.with_name("evals.json")
    desk.data.write_text(json.dumps({"schemaVersion": "1.2.0", "items": [{"name": "t", "turns": turns}]}))
    prepared = desk.submit(trials=2)
    assert desk.finish(prepared, rounds=2) == 0
    assert desk.asked == ["one", "one", "two", "two"]


def test_a_verdict_is_read_although_the_judge_repeats_what_it_was_shown(desk: Desk) -> None:
    def repeat(body: dict[str, Any]) -> dict[str, Any]:
        material = body["messages"][-1]["content"]
        block = re.search(r"<response-(\w+)>.*</response-\1>", material, re.DOTALL)
        assert block is not None
        assert block.group(1) != "0" * 16
        return {"reply": f"{block.group()}\n4"}

    desk.server.script([], after={"reply": "x"}, match=[('"judge"', repeat)])
    prepared = desk.submit(evaluators="Relevance", judge="judge")
    assert desk.finish(prepared, rounds=2) == 0
    assert scores_of(prepared)["score"].to_list() == [4.0] * 4


def test_a_verdict_of_a_jury_waits_for_all_of_it(desk: Desk) -> None:
    desk.server.plans.extend([{}, {}, {"status": "expired", "answered": 0}])
    stored = desk.data.with_name("stored.jsonl")
    stored.write_text('{"id": "a", "query": "q", "response": "r"}\n')
    desk.data = stored
    judges: dict[str, Any] = {"judge": ["judge", "judge", "judge"], "judge_base_url": desk.server.base_url}
    prepared = desk.submit(evaluators="Relevance", model=None, base_url=None, **judges)
    assert [job["endpoint"] for job in desk.server.jobs] == ["/v1/chat/completions"] * 3
    assert desk.finish(prepared, rounds=2) == 0
    jury = json.loads(scores_of(prepared)["details_json"][0])["jury"]
    assert [each.get("error") for each in jury] == [None] * 3


def test_texts_are_embedded_at_once_when_all_answers_are_there(desk: Desk) -> None:
    settings = {"evaluators": "TextSimilarity", "embedding_model": "e"}
    settings["embedding_base_url"] = desk.server.base_url
    options = {"TextSimilarity": {"evaluation_metric": "cosine", "threshold": 0.5}}
    prepared = desk.submit(options=options, **settings)
    assert all("input" not in request["body"] for request in desk.server.requests)
    assert desk.finish(prepared, rounds=1) == 0
    assert scores_of(prepared)["score"].null_count() == 0


def test_azure_is_told_the_deployment_and_its_own_path(desk: Desk) -> None:
    prepared = desk.submit(target="azure", model="my-batch", base_url=desk.server.azure_url)
    assert [job["endpoint"] for job in desk.server.jobs] == ["/chat/completions"]
    assert {request["body"]["model"] for request in desk.server.requests} == {"my-batch"}
    assert desk.finish(prepared, rounds=1) == 0


def test_the_responses_api_is_asked_in_its_own_form(desk: Desk) -> None:
    prepared = desk.submit(responses_api=True)
    assert [job["endpoint"] for job in desk.server.jobs] == ["/v1/responses"]
    assert desk.finish(prepared, rounds=1) == 0
    assert samples_of(prepared)["output_text"].to_list() == ["Paris"] * 4


def test_a_wrong_key_ends_the_submission_and_leaves_nothing(desk: Desk, api_key: str) -> None:
    desk.server.key = "another"
    with pytest.raises(EndpointError, match="OPENAI_API_KEY") as raised:
        desk.submit()
    assert api_key not in str(raised.value)
    assert list((desk.store / "runs").iterdir()) == []


def test_no_file_of_a_run_by_jobs_holds_the_key(desk: Desk, api_key: str) -> None:
    desk.server.script([], after={"reply": f"your key is {api_key}"})
    prepared = desk.submit()
    files = [path for path in prepared.folder.path.rglob("*") if path.is_file()]
    desk.finish(prepared, rounds=1)
    files += [path for path in prepared.folder.path.rglob("*") if path.is_file()]
    assert [path for path in files if path.is_file() and api_key.encode() in path.read_bytes()] == []
    assert samples_of(prepared)["output_text"].to_list() == ["your key is ***"] * 4


@pytest.mark.parametrize(
    ("settings", "problem"),
    [({"max_cost": 1.0}, "--max-cost"), ({"model": None, "base_url": None}, "nothing asks a model")],
)
def test_what_jobs_cannot_do_is_refused(desk: Desk, settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        check_jobs(desk.configure(**settings))


def test_the_book_of_a_finished_run_says_what_became_of_its_jobs(desk: Desk) -> None:
    prepared = desk.submit()
    desk.finish(prepared, rounds=1)
    book = read_book(prepared.folder)
    assert book is not None
    assert [(job.state, job.status, job.done) for job in book.jobs] == [("settled", "completed", 4)]
    assert [path.name for path in (prepared.folder.path / "batch").iterdir()] == ["jobs.json"]
