"""A function that answers what a script says, for tests of evaluations whose target is a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def scripted(answers: Mapping[str, str] | Callable[[str], str]) -> Callable[[str], str]:
    """Return a target that answers from a table or by a rule, and remembers nothing.

    Args:
        answers: Question to answer, or what makes one of the other. The key `*` answers every question
            that has no answer of its own.

    Returns:
        A function of the question. It raises LookupError for a question without an answer, which makes
        that row an error.

    Example:
        In `target.py`, for `assay run questions.jsonl --target python:target.py:answer`::

            from assay.testing import scripted

            answer = scripted({"1 + 1?": "2", "*": "I do not know."})
    """
    if callable(answers):
        return answers
    table = dict(answers)

    def answer(query: str) -> str:
        found = table.get(query, table.get("*"))
        if found is None:
            raise LookupError(f"no answer is scripted for {query!r}")
        return found

    return answer
