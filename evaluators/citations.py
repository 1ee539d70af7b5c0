"""Citations: how many sources the answer cites."""

from __future__ import annotations

from typing import Literal, TypeAlias

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options, Scale

CitationFormat: TypeAlias = Literal["mixed", "oai_unicode", "bracket", "markdown"]

_BRACKET = r"\[[0-9]+\]|\[\^[0-9]+\^\]"
_LINK = r"\[[0-9]+\]\([^()\s]+(?:\([^()\s]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)"
_MARKER = r"\x{E200}cite[^\x{E200}\x{E201}]*\x{E201}"
_SEPARATOR = "\ue202"
_AROUND_LABEL = r"^\[\^?|\^?\](?:\(.*\))?$|^\x{E200}cite|\x{E201}$"
_PATTERNS: dict[CitationFormat, str] = {
    "mixed": f"{_LINK}|{_BRACKET}|{_MARKER}",
    "oai_unicode": _MARKER,
    "bracket": f"{_LINK}|{_BRACKET}",
    "markdown": _LINK,
}


class CitationsOptions(Options):
    """Options of Citations."""

    citation_format: CitationFormat = Field(
        default="mixed",
        description="bracket: [1], [^1^]; markdown: [1](url); oai_unicode: private-use marks; mixed: all",
    )
    count: Literal["distinct", "occurrences"] = Field(
        default="distinct", description="whether a label that is cited twice counts once"
    )


def measure_citations(options: CitationsOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score the number of citations; the labels stand in the details, in order.

    A link `[1](url)` is one citation and belongs to `markdown` and `mixed` alone: its `[1]` is no bracket
    citation, so every mark belongs to one format and `mixed` is their sum. One label in two formats is one
    source. No published text fixes the `oai_unicode` mark; it is assumed to be U+E200, `cite`, references
    that U+E202 separates, U+E201, and each reference counts.
    """
    found = pl.col("response").str.extract_all(_PATTERNS[options.citation_format])
    if options.citation_format == "bracket":
        found = found.list.filter(~pl.element().str.ends_with(")"))
    bare = pl.element().str.replace_all(_AROUND_LABEL, "").str.split(_SEPARATOR).explode()
    labels = found.list.eval(bare).list.filter(pl.element() != "")
    if options.count == "distinct":
        labels = labels.list.unique(maintain_order=True)
    details = pl.struct(citation_format=pl.lit(options.citation_format), labels=labels).struct.json_encode()
    return frame.select(score=labels.list.len().cast(pl.Float64), details_json=details)


EVALUATOR = ColumnEvaluator(
    name="Citations",
    summary="How many sources the answer cites.",
    aliases=("citations",),
    needs=("response",),
    options=CitationsOptions,
    scale=Scale(0.0, None),
    thresholds=Scale(1.0, None, whole=True),
    measure=measure_citations,
)
