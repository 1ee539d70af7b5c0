"""RegexMatch: whether the answer matches one of several patterns, as Python's `re` sees it."""

from __future__ import annotations

import asyncio
import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import orjson
import polars as pl
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from evaluators import regex_search
from evaluators.contract import ColumnEvaluator, Options
from evaluators.regex_search import INVALID, PLACEHOLDER, TOO_LONG

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 0.5  # seconds of CPU time for all patterns on one row
_MESSAGES = {
    TOO_LONG: f"the patterns took more than {LIMIT:g} s of CPU time on this answer",
    INVALID: "with the expected answer put in, a pattern is no regular expression",
}
_SEARCHING = ("-I", "-S", "-W", "ignore", str(Path(regex_search.__file__)))


def _list_patterns(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _check_pattern(pattern: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern.replace(PLACEHOLDER, "x"))
    except (re.error, OverflowError, RecursionError) as error:
        raise PydanticCustomError(
            "pattern", "a regular expression of Python: {fault}", {"fault": str(error)}
        ) from error
    return pattern


_Pattern: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_check_pattern)]


class RegexMatchOptions(Options):
    """Options of RegexMatch."""

    patterns: Annotated[list[_Pattern], BeforeValidator(_list_patterns)] = Field(
        min_length=1,
        description="a pattern or patterns, tried in turn; {{ground_truth}} stands for the expected answer",
    )

    @property
    def extra_needs(self) -> tuple[str, ...]:
        """The reference, when a pattern asks for it."""
        asked = any(PLACEHOLDER in pattern for pattern in self.patterns)
        return ("expected_response",) if asked else ()


def measure_matches(_: RegexMatchOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where a pattern is found anywhere in the answer, else 0; an empty answer holds nothing.

    Patterns are those of Python's `re`, without flags but those they hold. Because such a pattern may take
    for ever on a short text, and nothing can stop `re` within a process, one process per call does the
    searching and stops itself on a row that takes more than `LIMIT`: that row is an error `regex_timeout`.
    """
    found = _search(frame)
    index = pl.Series("index", [each if isinstance(each, int) else None for each in found], dtype=pl.Int64)
    code = pl.Series(
        "error_code", [each if isinstance(each, str) else None for each in found], dtype=pl.String
    )
    match = pl.col("index") >= 0
    told = pl.concat_str(pl.lit('{"match_found":true,"matched_pattern_index":'), "index", pl.lit("}"))
    return pl.DataFrame([index, code]).select(
        "error_code",
        score=match.cast(pl.Float64),
        details_json=pl.when(match).then(told).when(~match).then(pl.lit('{"match_found":false}')),
        error_message=pl.col("error_code").replace_strict(_MESSAGES, return_dtype=pl.String),
    )


def _search(frame: pl.DataFrame) -> Sequence[int | str]:
    patterns = frame["patterns"].to_list()
    sets: dict[tuple[str, ...], int] = {}
    numbers = [sets.setdefault(tuple(each), len(sets)) for each in patterns]
    nothing = [None] * frame.height
    expected = frame["expected_response"].to_list() if "expected_response" in frame.columns else nothing
    rows = list(zip(numbers, frame["response"].to_list(), expected, strict=True))
    return asyncio.run(_ask(orjson.dumps({"limit": LIMIT, "sets": list(sets), "rows": rows})))


async def _ask(question: bytes) -> Sequence[int | str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, *_SEARCHING, stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        answer, complaint = await process.communicate(question)
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        raise RuntimeError(f"the search ended with {process.returncode}: {complaint.decode()[-300:]}")
    return orjson.loads(answer)


EVALUATOR = ColumnEvaluator(
    name="RegexMatch",
    summary="Whether the answer matches one of several regular expressions of Python.",
    aliases=("regex_match", "builtin.regex_match"),
    needs=("response",),
    options=RegexMatchOptions,
    measure=measure_matches,
    row_options={"patterns": pl.List(pl.String)},
)
