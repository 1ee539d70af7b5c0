"""The strict verdict on M365 eval documents beside that of the published schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.config import Reading
from assay.contracts.json_text import parse_json
from assay.datasets.faults import Faults
from assay.datasets.files import Source
from assay.datasets.m365 import read
from assay.datasets.m365_schema import find_deviations
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.contracts.json_text import JsonValue

GOLDEN = Path(__file__).parents[1] / "golden" / "golden-m365-schema.jsonl"
SHARED = Path(__file__).parents[3] / "shared" / "schemas" / "m365"
VECTORS: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]

# Where a strict reading says something else than the schema, which knows nothing of other versions.
DECIDED = {
    "schemaVersion-1.99.0": "newer than the versions known here, so its meaning is not",
    "schemaVersion-2.0.0": "a published version without a published schema; held to the rules of 1.11.0",
    "mode-replace-without-evaluators": "would score nothing and pass in silence",
    "repo:valid/comprehensive.json": "evaluators in a document of version 1.1.0, before 1.2.0",
}


def _read_strictly(document: Any) -> list[str]:
    """Return what a strict reading refuses."""
    text = json.dumps(document, indent=1)
    faults = Faults("evals.json", "item")
    try:
        found = read(Source(Path("evals.json"), "evals.json", text, "sha", Reading(strict=True)), faults)
    except InputError as error:
        return [str(error)]
    return [*(str(n) for n in found.notices if n.strict), *(fault.message for fault in faults.take())]


def _load_published(name: str) -> list[dict[str, Any]]:
    path = SHARED / name
    if not path.exists():
        pytest.skip("the published documents are not here")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_deviations_are_found_where_the_published_schema_finds_errors(vector: dict[str, Any]) -> None:
    assert (not find_deviations(vector["document"])) == vector["by_schema"]["1.11.0"]["valid"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_strict_reading_refuses_what_the_published_schema_refuses(vector: dict[str, Any]) -> None:
    agrees = (not _read_strictly(vector["document"])) == vector["by_schema"]["1.11.0"]["valid"]
    assert agrees == (vector["name"] not in DECIDED)


def test_the_verdict_on_published_documents_is_that_of_the_schema() -> None:
    for vector in _load_published("published-documents.jsonl"):
        valid = vector["by_schema"]["1.11.0"]["valid"]
        assert (not find_deviations(vector["document"])) == valid, vector["name"]
        assert ((not _read_strictly(vector["document"])) == valid) == (vector["name"] not in DECIDED)


def test_published_examples_are_told_apart() -> None:
    paths = sorted((SHARED / "examples").glob("*/*.json"))
    if not paths:
        pytest.skip("the published examples are not here")
    wrong = [
        p.name
        for p in paths
        if bool(find_deviations(parse_json(p.read_text()))) != (p.parent.name == "invalid")
    ]
    assert wrong == []


def test_published_fixtures_are_valid_as_items() -> None:
    fixtures = [each for each in _load_published("published-fixtures.jsonl") if each["evaluator"][0] != "_"]
    fields = ("prompt", "response", "expected_response")
    items = [
        {**{f: each[f] for f in fields}, "evaluators": {each["evaluator"]: each["options"]}}
        for each in fixtures
    ]
    assert items
    assert _read_strictly({"schemaVersion": "1.11.0", "items": items}) == []


OPTIONS: dict[str, Any] = {
    "Relevance": {"threshold": 3},
    "Citations": {"threshold": 2.0, "citation_format": "footnotes"},
    "ExactMatch": {"case_sensitive": True},
    "PartialMatch": {"threshold": 0.3, "case_sensitive": False},
    "RetrievalQuery": {"capability": "Email", "selector": "trip", "includes": ["fee"], "excludes": []},
    "RetrievalResult": {
        "capability": "Email",
        "max_rank": 3,
        "expected_items": [{"retrievalExtract_contains": "fee"}],
    },
    "ToolCallSelection": {
        "calls": [{"id": "a", "tool": {"plugin_name": "travel", "function_name": "book"}}],
        "allow_additional_calls": True,
    },
    "ToolCallExecution": {"calls": [{"tool": {"plugin_name": "travel", "function_name": "book"}}]},
    "politeness": {"threshold": 7, "options": {"any": None}},
}
RETRIEVED = {"score": 1, "result": "pass", "threshold": 1, "diagnostic_code": "pass", "reason": "found"}
SCORES: dict[str, Any] = {
    "relevance": {"score": 4, "result": "pass", "threshold": 3, "reason": "fits", "extra": 1},
    "similarity": {"result": "error", "error": "no answer in time", "code": "judgeTimeout"},
    "citations": {"count": 0, "result": "fail", "threshold": 1, "citations": [{"index": 1}], "reason": 5},
    "exactMatch": {"match": False, "result": "fail"},
    "partialMatch": {"score": 0.5, "result": "pass", "threshold": 0.5},
    "retrievalQuery": {**RETRIEVED, "matched_queries": ["trip"], "excludes_found": []},
    "retrievalResult": {
        **RETRIEVED,
        "results_evaluated": 2,
        "matched_items": [{"extractMatch": "fee", "matchedHitUrl": "u", "matchedHitRank": 1}],
        "missing_items": [{"extractMatch": "date", "reason": "absent"}],
    },
    "toolCallSelection": {"score": 1.0, "result": "pass", "threshold": 1, "reason": "all there"},
    "politeness": "anything",
}
DIAGNOSTICS: dict[str, Any] = {
    "retrieval_executions": [
        {
            "capability": "Email",
            "status": None,
            "totalResultCount": 1,
            "queries": [{"queryString": "trip", "filterExpression": None}],
            "retrievalHits": [{"rank": 1, "webUrl": "u", "extracts": [{"text": "fee"}]}],
        }
    ],
    "tool_calls": {
        "selected_functions": [{"plugin_name": "travel", "function_name": None}],
        "executions": [{"plugin_name": "travel", "function_name": "book", "response_status": 200}],
    },
}
TURN: dict[str, Any] = {
    "prompt": "What does Kessalo pay for a trip?",
    "evaluators": OPTIONS,
    "allowed_tools": ["travel_book"],
    "allowed_tools_mode": "replace",
    "scores": SCORES,
    "diagnostics": DIAGNOSTICS,
    "status": "partial",
    "error": {"code": "evaluatorsFailed", "message": "1 of 9"},
    "tags": ["trip"],
    "extensions": {"any": 1},
}
COUNTS = {"turns_total": 1, "turns_passed": 0, "turns_failed": 0, "turns_partial": 1, "turns_errored": 0}
FULL: dict[str, Any] = {
    "schemaVersion": "1.11.0",
    "metadata": {"name": "trips", "createdAt": "some day", "tags": ["a"], "extensions": {}},
    "default_evaluators": OPTIONS,
    "default_allowed_tools": [],
    "items": [
        TURN,
        {
            "name": "thread",
            "turns": [TURN],
            "conversation_id": "c",
            "summary": {**COUNTS, "overall_status": "partial"},
        },
    ],
}
VALUES = [None, True, 0, 1, 2.0, 1.5, -1, "", " ", "x", "pass", "error", [], [""], [1], {}, {"a": 1}]
KEYS = ["surplus", "prompt", "turns", "result", "threshold", "score", "code", "testId"]


def _list_places(value: JsonValue, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    pairs: Iterable[tuple[str | int, JsonValue]] = ()
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(place for key, member in pairs for place in _list_places(member, (*path, key)))]


def _follow(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


PLACES = _list_places(FULL)[1:]
CHANGES = st.tuples(st.sampled_from(["set", "drop", "add"]), st.sampled_from(PLACES), st.sampled_from(VALUES))


def _change(change: str, place: tuple[Any, ...], value: Any, key: str) -> Any:
    document = json.loads(json.dumps(FULL))
    holder, target = _follow(document, place[:-1]), _follow(document, place)
    if change == "drop":
        del holder[place[-1]]
    elif change == "add" and isinstance(target, dict):
        target[key] = value
    else:
        holder[place[-1]] = value
    return document


def test_a_document_with_everything_is_valid() -> None:
    assert find_deviations(FULL) == []
    assert _read_strictly(FULL) == []


@given(CHANGES, st.sampled_from(KEYS))
def test_a_changed_document_is_valid_when_the_published_schema_says_so(
    change: tuple[str, tuple[Any, ...], Any], key: str
) -> None:
    schema = SHARED / "eval-document.1.11.0.schema.json"
    if not schema.exists():
        pytest.skip("the published schema is not here")
    validator = pytest.importorskip("jsonschema").Draft202012Validator(json.loads(schema.read_text("utf-8")))
    document = _change(*change, key)
    assert (not find_deviations(document)) == validator.is_valid(document)


@given(CHANGES, st.sampled_from(KEYS))
def test_a_strict_reading_never_lets_a_deviation_pass(
    change: tuple[str, tuple[Any, ...], Any], key: str
) -> None:
    document = _change(*change, key)
    assert not find_deviations(document) or _read_strictly(document)


@pytest.mark.parametrize(
    ("place", "value", "pointer", "message"),
    [
        (("metadata", "tags"), "a", "metadata.tags", "text, expected a list"),
        (("items", 0, "status"), "skipped", "items[0].status", '"skipped"; accepted: pass, fail'),
        (("items", 0, "scores", "exactMatch"), {"result": "pass"},
         "items[0].scores.exactMatch.match", "missing"),
        (("items", 1, "turns", 0, "evaluators", "Relevance", "threshold"), 6,
         "items[1].turns[0].evaluators.Relevance.threshold", "6, expected 5 or less"),
        (("items", 0, "scores", "toolCallSelection", "score"), 0,
         "items[0].scores.toolCallSelection.score", "a pass has the score 1"),
        (("items", 0, "evaluators", "RetrievalResult"), {"capability": "Email"},
         "items[0].evaluators.RetrievalResult", "expects nothing"),
        (("items", 0, "evaluators", "ExactMatch"), {"case_sensitiv": True},
         "items[0].evaluators.ExactMatch.case_sensitiv", "did you mean case_sensitive?"),
    ],
)  # fmt: skip
def test_a_deviation_says_where_and_what(
    place: tuple[Any, ...], value: Any, pointer: str, message: str
) -> None:
    (deviation,) = find_deviations(_change("set", place, value, ""))
    assert deviation.pointer == pointer
    assert message in deviation.message


def test_a_strict_reading_places_deviations_and_repeats_nothing() -> None:
    text = (
        '{"schemaVersion": "1.11.0",\n "metadata": {"tags": 1},\n "items": [\n {"prompt": 5, "status": 1},\n'
    )
    text += ' {"prompt": "p", "testId": "T",\n  "status": "skipped"}]}'
    faults = Faults("evals.json", "item")
    source = Source(Path("evals.json"), "evals.json", text, "sha", Reading(strict=True))
    notices = read(source, faults).notices
    assert [(n.code, n.line, n.column, n.pointer, n.strict) for n in notices] == [
        ("foreign_field", 5, 28, "items[1].testId", True),
        ("schema", 2, 23, "metadata.tags", True),
        ("schema", 6, 13, "items[1].status", True),
    ]
    assert [fault.pointer for fault in faults.take()] == ["items[0].prompt"]


def test_a_reading_that_is_not_strict_does_not_compare() -> None:
    document = {"schemaVersion": "1.11.0", "items": [{"prompt": "p", "status": "skipped"}]}
    source = Source(Path("evals.json"), "evals.json", json.dumps(document), "sha")
    assert read(source, Faults("evals.json", "item")).notices == ()


@pytest.mark.parametrize(
    "text", ['[{"prompt": "p"}]', '{"prompts": ["p"], "metadata": {"tags": 1}}', "{}", "5"]
)
def test_a_strict_reading_refuses_older_forms(text: str) -> None:
    assert _read_strictly(json.loads(text))
