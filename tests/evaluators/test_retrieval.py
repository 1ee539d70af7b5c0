from __future__ import annotations

import asyncio
import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError
from evaluators import retrieval_query, retrieval_result
from evaluators.catalog import Catalog
from evaluators.runner import run_evaluation, run_evaluations

CATALOG = Catalog([retrieval_query.EVALUATOR, retrieval_result.EVALUATOR])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["capability", "queries", "queryString", "retrievalHits", "rank", "extracts", "text"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def judge(name: str, executions: object, **options: Any) -> dict[str, Any]:
    evaluation = CATALOG.resolve(name, options)
    text = None if executions is None else json.dumps(executions)
    rows = pl.DataFrame({"retrieval": [text]}, schema_overrides={"retrieval": pl.String})
    row = asyncio.run(run_evaluation(evaluation, rows, None)).row(0, named=True)
    return row | json.loads(row["details_json"] or "{}")


def hit(rank: int | None, *texts: str, url: str = "https://x.org") -> dict[str, Any]:
    return {"rank": rank, "webUrl": url, "extracts": [{"text": text} for text in texts]}


def execution(capability: str, *hits: dict[str, Any], queries: tuple[str, ...] = ()) -> dict[str, Any]:
    asked = [{"queryString": query, "filterExpression": "selector"} for query in queries]
    return {"capability": capability, "queries": asked, "retrievalHits": list(hits)}


def items(*texts: str) -> list[Any]:
    return [{"retrievalExtract_contains": text} for text in texts]


MAIL = execution("Email", hit(1, "An UPDATE"), hit(4, "the Budget"), hit(11, "travel plan"))
FILES = execution("OneDriveAndSharePoint", hit(1, "travel plan"))
THREE = items("update", "budget", "Travel")


@pytest.mark.parametrize(
    ("executions", "options", "score", "code"),
    [
        ([MAIL, FILES], {"capability": "Email", "expected_items": THREE}, 2 / 3, "not_retrieved"),
        ([MAIL], {"expected_items": THREE, "min_expected_count": 2}, 2 / 3, "not_retrieved"),
        ([MAIL], {"expected_items": THREE, "max_rank": 11}, 1.0, "pass"),
        ([MAIL, FILES], {"expected_items": THREE}, 1.0, "pass"),
        ([], {"expected_items": THREE}, 0.0, "not_retrieved"),
        (None, {"expected_items": THREE}, 0.0, "not_retrieved"),
        (None, {"min_expected_count": 1}, 0.0, "count_below_minimum"),
        ([MAIL], {"min_expected_count": 2}, 1.0, "pass"),
        ([MAIL], {"min_expected_count": 3}, 0.0, "count_below_minimum"),
        ([MAIL], {"expected_items": THREE[:2], "min_expected_count": 3}, 0.0, "count_below_minimum"),
    ],
)
def test_the_share_of_what_was_retrieved_is_scored_and_only_all_of_it_passes(
    executions: object, options: dict[str, Any], score: float, code: str
) -> None:
    row = judge("RetrievalResult", executions, **options)
    assert (row["score"], row["label"], row["diagnostic_code"]) == (score, code, code)
    assert row["passed"] is (code == "pass")
    assert row["threshold"] == 1.0


def test_details_say_where_each_text_was_found() -> None:
    row = judge("retrievalResult", [MAIL], expected_items=items("update", "nowhere"))
    found = {"extractMatch": "update", "matchedHitUrl": "https://x.org", "matchedHitRank": 1}
    missed = [{"extractMatch": "nowhere", "reason": "in no extract of 2 hits"}]
    assert (row["matched_items"], row["missing_items"]) == ([found], missed)
    assert (row["extract_failures"], row["results_evaluated"]) == (missed, 2)
    assert row["reason"] == "not retrieved: nowhere"
    nothing = judge("RetrievalResult", [], expected_items=items("update"))
    assert nothing["missing_items"] == [{"extractMatch": "update", "reason": "no hits"}]
    assert nothing["extract_failures"] == []


def test_a_hit_without_a_rank_has_that_of_its_place_and_the_best_rank_is_named() -> None:
    found = execution("Email", hit(None, "other"), hit(None, "text a", "text b"), hit(1, "a text"))
    row = judge("RetrievalResult", [found], expected_items=items("text b"), max_rank=2)
    assert row["matched_items"][0]["matchedHitRank"] == 2
    best = judge("RetrievalResult", [found], expected_items=items("text"))
    assert best["matched_items"][0]["matchedHitRank"] == 1
    assert judge("RetrievalResult", [found], expected_items=items("text b"), max_rank=1)["score"] == 0.0


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("RetrievalResult", {}, "expected_items, min_expected_count or both"),
        ("RetrievalResult", {"expected_items": []}, "at least 1 item"),
        ("RetrievalResult", {"expected_items": [{"webUrl": "x"}]}, "retrievalExtract_contains"),
        ("RetrievalResult", {"min_expected_count": 0}, "greater than or equal to 1"),
        ("RetrievalResult", {"min_expected_count": 1, "threshold": 0.5}, r"within 1$"),
        ("RetrievalResult", {"min_expected_count": 1, "match": "regex"}, "'contains' or 'entailment'"),
        ("RetrievalQuery", {}, "selector"),
        ("RetrievalQuery", {"selector": ""}, "at least 1 character"),
        ("RetrievalQuery", {"selector": "a", "includes": [""]}, "at least 1 character"),
        ("RetrievalQuery", {"selector": "a", "includes": 5}, "a valid list"),
        ("RetrievalQuery", {"selector": "a", "threshold": 0}, r"within 1$"),
    ],
)
def test_options_that_cannot_be_met_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CATALOG.resolve(name, options)


def test_options_come_back_as_they_were_spelt() -> None:
    evaluation = CATALOG.resolve("RetrievalResult", {"expected_items": THREE, "threshold": 1})
    assert json.loads(evaluation.options_json)["expected_items"] == THREE
    assert CATALOG.resolve("RetrievalResult", json.loads(evaluation.options_json)) == evaluation


ASKED = execution("Email", queries=("Q4 Sales Report projections", "q4 SALES report profit", "weather"))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"includes": ["Projections", "PROFIT"], "excludes": ["FileType:OneNote"]}, "pass"),
        ({"includes": "profit", "excludes": "weather"}, "pass"),
        ({"includes": ["weather"]}, "required_terms_missing"),
        ({"excludes": ["PROJECTIONS"]}, "excluded_terms_found"),
        ({"includes": "weather", "excludes": "profit"}, "mixed_term_failure"),
        ({"selector": "budget"}, "no_matching_query"),
        ({"selector": "selector"}, "no_matching_query"),
        ({"capability": "Email"}, "pass"),
        ({"capability": "TeamsMessages"}, "retrieval_failure"),
    ],
)
def test_queries_are_judged_by_the_terms_they_hold(options: dict[str, Any], code: str) -> None:
    row = judge("retrievalQuery", [ASKED], **{"selector": "q4 sales", **options})
    assert (row["label"], row["diagnostic_code"], row["passed"]) == (code, code, code == "pass")
    assert row["reason"]


def test_without_execution_data_the_query_fails() -> None:
    nothing: tuple[list[str] | None, ...] = (None, [])
    for executions in nothing:
        row = judge("RetrievalQuery", executions, selector="a", includes="b")
        assert (row["score"], row["label"], row["status"]) == (0.0, "retrieval_failure", "ok")
        assert (row["matched_queries"], row["includes_missing"]) == ([], ["b"])


def test_a_rank_may_be_written_with_a_point() -> None:
    found: list[Any] = [execution("Email", hit(11, "b") | {"rank": 11.0})]
    assert judge("RetrievalResult", found, expected_items=items("b"))["score"] == 0.0
    row = judge("RetrievalResult", found, expected_items=items("b"), max_rank=11)
    assert (row["score"], row["matched_items"][0]["matchedHitRank"]) == (1.0, 11)


def test_a_query_may_be_its_text_alone() -> None:
    found: list[Any] = [{"capability": "Email", "queries": ["find b", {"queryString": "find c"}]}]
    row = judge("RetrievalQuery", found, selector="find", includes=["b", "c"])
    assert (row["score"], row["matched_queries"]) == (1.0, ["find b", "find c"])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "RetrievalResult",
            {"retrievalHits": [{"rank": "99"}]},
            "rank of a hit of retrieval is text",
        ),
        ("RetrievalResult", {"retrievalHits": [{"rank": True}]}, "rank of a hit of retrieval is a boolean"),
        (
            "RetrievalResult",
            {"retrievalHits": [{"rank": 1.5}]},
            "of retrieval is a number (1.5)",
        ),
        ("RetrievalResult", {"retrievalHits": {"rank": 1}}, "retrievalHits of retrieval is an object"),
        ("RetrievalResult", {"retrievalHits": ["a"]}, "retrievalHits of retrieval[0] is text"),
        ("RetrievalResult", {"retrievalHits": [{"extracts": "a"}]}, "extracts of a hit of retrieval is text"),
        ("RetrievalResult", {"retrievalHits": [{"extracts": [{"text": 1}]}]}, "is a number, expected text"),
        ("RetrievalQuery", {"queries": "find a"}, "queries of retrieval is text, expected a list"),
        ("RetrievalQuery", {"queries": {"queryString": "a"}}, "queries of retrieval is an object"),
        ("RetrievalQuery", {"queries": [7]}, "a query of retrieval is a number"),
        ("RetrievalQuery", {"queries": [{"queryString": 7}]}, "is a number, expected text"),
        ("RetrievalQuery", {"capability": 7}, "capability of retrieval is a number, expected text"),
    ],
)
def test_queries_and_hits_of_another_form_are_an_error(name: str, value: object, message: str) -> None:
    options = {"selector": "a"} if name == "RetrievalQuery" else {"min_expected_count": 1}
    row = judge(name, [value], **options)
    assert (row["status"], row["error_code"], row["score"]) == ("error", "bad_field", None)
    assert message in row["error_message"]


@given(JSON)
def test_no_form_of_executions_crashes(value: object) -> None:
    for name, options in (
        ("RetrievalQuery", {"selector": "a"}),
        ("RetrievalResult", {"expected_items": items("a"), "min_expected_count": 1}),
    ):
        row = judge(name, value, **options)
        assert row["status"] in {"ok", "error"}
        assert "retrieval" in (row["error_message"] or "retrieval")
        assert row["error_code"] in {None, "bad_field"}
        assert row["score"] in {0.0, 1.0, None}


@given(st.permutations([MAIL, FILES, ASKED]))
def test_the_order_of_executions_never_matters(executions: list[dict[str, Any]]) -> None:
    row = judge("RetrievalResult", executions, expected_items=THREE)
    assert (row["score"], row["matched_items"][2]["matchedHitRank"]) == (1.0, 1)
    assert judge("RetrievalQuery", executions, selector="q4", includes="profit")["score"] == 1.0


def test_rows_with_options_of_their_own_are_judged_in_one_call() -> None:
    texts = [json.dumps([execution("Email", queries=(f"find {n}",))]) for n in range(300)]
    uses = [CATALOG.resolve("RetrievalQuery", {"selector": f"find {n}"}) for n in range(300)]
    rows = pl.DataFrame({"query": ["q"] * 300, "retrieval": texts}).with_columns(
        use=pl.int_range(300, dtype=pl.UInt32)
    )
    assert asyncio.run(run_evaluations(uses, rows, None))["score"].to_list() == [1.0] * 300
