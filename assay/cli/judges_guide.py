"""The guide to the judges: what each is told, sees and answers with, as the catalog has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from assay.cli.guide import describe
from evaluators.contract import JudgeEvaluator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evaluators.contract import Evaluator

Judge: TypeAlias = "JudgeEvaluator[Any]"

SHA_DIGITS = 12
HEAD = """# Judges

Written by `assay evaluators --kind judge --format md`; a test compares the two. What holds for all of them is
in [JUDGING.md](JUDGING.md); options and aliases of each are in [evaluators.md](evaluators.md).

A judge sees the fields named here, each in a block of its own, and nothing else. `hash` is the beginning of
the SHA-256 of its whole system message and stands in full in every score (`prompt_sha`): scores of two hashes
are not comparable. A score that reaches the threshold passes; where lower is better, one that stays at or
below it.
"""


def list_judges(evaluators: Sequence[Evaluator]) -> list[Judge]:
    """Return the evaluators that ask a judge, whether always or under some options."""
    forms = ((each, each.asking) for each in evaluators)
    return [form for pair in forms for form in pair if isinstance(form, JudgeEvaluator)]


def write_judges(evaluators: Sequence[Evaluator]) -> str:
    """Write the guide as Markdown: a table of all judges, and what each is told."""
    judges = list_judges(evaluators)
    columns = ("judge", "sees", "scale", "passes", "version", "hash")
    rows = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    rows += [f"| {' | '.join(_describe_row(judge))} |" for judge in judges]
    return "\n".join([HEAD, *rows, "", *(part for judge in judges for part in _write_section(judge))])


def _describe_row(judge: Judge) -> Iterator[str]:
    sees = [*judge.needs, *(f"{name}?" for name in judge.wants)]
    sign = "at least" if judge.higher_is_better else "at most"
    yield judge.name
    yield " ".join(sees)
    yield str(judge.scale)
    yield "-" if judge.threshold is None else f"{sign} {judge.threshold:g}"
    yield str(judge.version)
    yield " ".join(f"`{rubric.sha[:SHA_DIGITS]}`" for rubric in judge.rubrics) or "by its options"


def _write_section(judge: Judge) -> Iterator[str]:
    yield f"## {judge.name}\n"
    yield f"{describe(judge)['summary']}\n"
    if not judge.rubrics:
        yield "What it is told follows from its options; the hash in its scores is that of the result.\n"
    for rubric in judge.rubrics:
        yield f"```text\n{rubric.text}\n```\n"
        yield f"Answers with `{rubric.form.example}`\n"
