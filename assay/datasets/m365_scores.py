"""Recorded results of an eval document, as version 1.11.0 of its published schema accepts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.datasets.m365_shapes import (
    Deviation,
    accept_any,
    accept_flag,
    accept_list,
    accept_null_or,
    accept_number,
    accept_object,
    accept_one_of,
    accept_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.contracts.json_text import JsonValue
    from assay.datasets.m365_shapes import Path, Shape

STATUS = accept_one_of("pass", "fail", "partial", "error")
_RESULT = accept_one_of("pass", "fail", "error")  # an errored score is told apart before
_TEXTS = accept_list(accept_text())

CITATIONS = accept_list(
    accept_object(
        {"index": accept_number(1, whole=True), "text": accept_text(), "source": accept_text()},
        ("index",),
        accept_any,
    )
)

ERROR = accept_object(
    {
        "code": accept_one_of(
            "agentRequestFailed",
            "agentAuthenticationError",
            "agentRateLimited",
            "agentTimeout",
            "agentResponseUnparseable",
            "toolCallNotAllowed",
            "turnSkipped",
            "evaluatorsFailed",
            "evaluationCrashed",
        ),
        "message": accept_text(1),
    },
    ("code", "message"),
)

_COUNT = accept_number(0, whole=True)
SUMMARY = accept_object(
    {
        "turns_total": accept_number(1, whole=True),
        "turns_passed": _COUNT,
        "turns_failed": _COUNT,
        "turns_partial": _COUNT,
        "turns_errored": _COUNT,
        "overall_status": STATUS,
    },
    ("turns_total", "turns_passed", "turns_failed", "turns_partial", "turns_errored", "overall_status"),
)

_MAYBE_TEXT = accept_null_or(accept_text())
_MAYBE_WHOLE = accept_null_or(accept_number(whole=True))
_QUERY = accept_object({"queryString": _MAYBE_TEXT, "filterExpression": _MAYBE_TEXT}, (), accept_any)
_HIT = accept_object(
    {
        "rank": _MAYBE_WHOLE,
        "webUrl": _MAYBE_TEXT,
        "extracts": accept_list(accept_object({"text": accept_text()}, (), accept_any)),
    },
    (),
    accept_any,
)
_RETRIEVAL = accept_object(
    {
        "capability": _MAYBE_TEXT,
        "status": _MAYBE_TEXT,
        "totalResultCount": _MAYBE_WHOLE,
        "queries": accept_list(_QUERY),
        "retrievalHits": accept_list(_HIT),
    },
    (),
    accept_any,
)
_TOOL = {"plugin_name": _MAYBE_TEXT, "function_name": _MAYBE_TEXT}
_EXECUTED = {**_TOOL, "response_status": _MAYBE_WHOLE}
_TOOL_CALLS = accept_object(
    {
        "selected_functions": accept_null_or(accept_list(accept_object(_TOOL, tuple(_TOOL)))),
        "executions": accept_null_or(accept_list(accept_object(_EXECUTED, tuple(_EXECUTED)))),
        "evidence_error": accept_one_of(
            "Multiple Developer Info artifacts were returned; "
            "no authoritative telemetry snapshot could be identified."
        ),
    },
    ("selected_functions", "executions"),
)
DIAGNOSTICS = accept_object(
    {"retrieval_executions": accept_list(_RETRIEVAL), "tool_calls": _TOOL_CALLS}, (), accept_any
)

_ERRORED = accept_object(
    {
        "result": accept_one_of("error"),
        "code": accept_one_of(
            "emptyAgentResponse",
            "judgeOutputUnparseable",
            "judgeAuthenticationError",
            "judgeRateLimited",
            "judgeTimeout",
            "evaluatorConfigurationError",
            "evaluatorLoadError",
            "invalidEvaluatorResult",
            "evaluatorError",
            "toolCallEvidenceIndeterminate",
        ),
        "error": accept_text(1),
    },
    ("result", "error"),
)


def _score(required: str, **fields: Shape) -> Shape:
    """Build the shape of a score: its own fields, or what an evaluator leaves that failed."""
    scored = accept_object(
        {"result": _RESULT, "reason": accept_text(), **fields}, ("result", *required.split()), accept_any
    )

    def check(value: JsonValue, path: Path) -> Iterator[Deviation]:
        failed = isinstance(value, dict) and value.get("result") == "error"
        return (_ERRORED if failed else scored)(value, path)

    return check


_JUDGED = _score("score threshold", score=accept_number(1, 5), threshold=accept_number(1, 5))
_CITED = _score(
    "count threshold",
    count=_COUNT,
    threshold=_COUNT,
    format=accept_text(),
    citations=CITATIONS,
    reason=accept_any,  # unlike the others it has none of its own
)
_MISSED = accept_list(
    accept_object({"extractMatch": accept_text(), "reason": accept_text()}, ("extractMatch",))
)
_MATCHED = accept_list(
    accept_object(
        {
            "extractMatch": accept_text(),
            "matchedHitUrl": accept_text(),
            "matchedHitRank": accept_number(whole=True),
            "reason": accept_text(),
        },
        ("extractMatch",),
    )
)
_SHARE = accept_number(0, 1)
_QUERIED = _score(
    "score threshold diagnostic_code",
    score=_SHARE,
    threshold=accept_number(),
    diagnostic_code=accept_one_of(
        "pass",
        "no_matching_query",
        "required_terms_missing",
        "excluded_terms_found",
        "mixed_term_failure",
        "retrieval_failure",
    ),
    matched_queries=_TEXTS,
    includes_missing=_TEXTS,
    excludes_found=_TEXTS,
)
_RETRIEVED = _score(
    "score threshold diagnostic_code",
    score=_SHARE,
    threshold=accept_number(),
    diagnostic_code=accept_one_of("pass", "not_retrieved", "count_below_minimum", "error"),
    results_evaluated=_COUNT,
    matched_items=_MATCHED,
    missing_items=_MISSED,
    extract_failures=_MISSED,
)
_CALLED = _score("score threshold reason", score=_SHARE, threshold=accept_number(1, 1), reason=accept_text(1))


def _check_call(value: JsonValue, path: Path) -> Iterator[Deviation]:
    """Check a score of tool calls: 1 is a pass, 0 a fail, and there is nothing between."""
    yield from _CALLED(value, path)
    if isinstance(value, dict) and value.get("result") in ("pass", "fail"):
        agreed = 1 if value["result"] == "pass" else 0
        score = value.get("score", agreed)
        if isinstance(score, bool) or score != agreed:
            yield Deviation((*path, "score"), f"a {value['result']} has the score {agreed}")


SCORES = accept_object(
    {
        "relevance": _JUDGED,
        "coherence": _JUDGED,
        "groundedness": _JUDGED,
        "similarity": _JUDGED,
        "citations": _CITED,
        "exactMatch": _score("match", match=accept_flag),
        "partialMatch": _score("score threshold", score=_SHARE, threshold=_SHARE),
        "retrievalQuery": _QUERIED,
        "retrievalResult": _RETRIEVED,
        "toolCallSelection": _check_call,
        "toolCallExecution": _check_call,
    },
    (),
    accept_any,
)
