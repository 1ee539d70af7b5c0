"""RetrievalQuery: whether the agent searched for what it should."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import BeforeValidator, Field

from evaluators.contract import Options, RowEvaluator, Scale, Verdict
from evaluators.retrieval import list_queries, read_executions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evaluators.contract import Fields


def _list_terms(value: object) -> object:
    return [value] if isinstance(value, str) else value


_Term: TypeAlias = Annotated[str, Field(min_length=1)]
_Terms: TypeAlias = Annotated[list[_Term], BeforeValidator(_list_terms)]


class RetrievalQueryOptions(Options):
    """Options of RetrievalQuery."""

    capability: str | None = Field(
        default=None,
        min_length=1,
        description="whose executions count, spelt exactly; without it all of them",
    )
    selector: str = Field(min_length=1, description="text that picks the queries to look at, in any case")
    includes: _Terms = Field(
        default_factory=list[str], description="a text or texts: each must stand in one of these queries"
    )
    excludes: _Terms = Field(
        default_factory=list[str], description="a text or texts: none may stand in any of these queries"
    )


def judge_queries(options: RetrievalQueryOptions, fields: Fields) -> Verdict:
    """Score 1 where the queries that contain the selector hold all included and no excluded texts, else 0.

    Case does not count; filter expressions are not looked at. An included text may stand in any one of the
    selected queries. Without a capability all executions count. No execution of the capability, or no
    execution data at all, is a fail with the code `retrieval_failure`. Options and codes are those of the
    published eval document schema 1.11.0.

    Raises:
        CallError: `bad_field`, when executions are not of their form.
    """
    executions = read_executions(fields["retrieval"], options.capability)
    matched = [query for query in list_queries(executions) if _contains(query, options.selector)]
    missing = [term for term in options.includes if not any(_contains(query, term) for query in matched)]
    found = [term for term in options.excludes if any(_contains(query, term) for query in matched)]
    if not executions:
        code, reason = "retrieval_failure", f"no execution of {options.capability or 'any capability'}"
    elif not matched:
        code, reason = "no_matching_query", f"no query contains {options.selector!r}"
    else:
        code, reason = _name_failure(missing, found)
    details = {
        "diagnostic_code": code,
        "matched_queries": matched,
        "includes_missing": missing if matched else options.includes,
        "excludes_found": found,
    }
    return Verdict(score=float(code == "pass"), label=code, reason=reason, details=details)


def _contains(query: str, text: str) -> bool:
    return text.casefold() in query.casefold()


def _name_failure(missing: Sequence[str], found: Sequence[str]) -> tuple[str, str]:
    reasons = [f"missing: {', '.join(missing)}"] if missing else []
    reasons += [f"excluded, but found: {', '.join(found)}"] if found else []
    code = "mixed_term_failure" if missing and found else "required_terms_missing"
    if not missing:
        code = "excluded_terms_found" if found else "pass"
    return code, "; ".join(reasons) or "all selected queries are as expected"


EVALUATOR = RowEvaluator(
    name="RetrievalQuery",
    summary="Whether the agent's retrieval queries hold what they should.",
    aliases=("retrieval_query", "retrievalQuery"),
    needs=(),
    wants=("retrieval",),
    json_fields=("retrieval",),
    options=RetrievalQueryOptions,
    thresholds=Scale(1.0, 1.0),
    judge=judge_queries,
)
