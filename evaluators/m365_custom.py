"""Custom evaluators of the M365 form: a class in a file of its folder's name."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import Field, JsonValue

from evaluators.contract import Options, RowEvaluator, Verdict
from evaluators.functions import ANY_NUMBER, make_verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from evaluators.contract import Fields

_DEFAULT_THRESHOLD = 1.0
_CALLED = {
    "prompt": "query",
    "response": "response",
    "expected_response": "expected_response",
    "context": "context",
}


class M365CustomOptions(Options):
    """Options of a custom evaluator."""

    threshold: float = Field(default=_DEFAULT_THRESHOLD, strict=False, description="score that passes")
    options: dict[str, JsonValue] = Field(default={}, description="handed to the class as they are")


def wrap_class(made: type[Any], name: str) -> RowEvaluator[M365CustomOptions]:
    """Make an evaluator of a class `C(*, threshold, options)` whose objects are called with the fields.

    The call gets `prompt`, `response`, `expected_response` and `context` as text, empty where there is
    none, and returns `{"score", "reason"}` or `{"error"}`, which is the error of its row. One object serves
    all rows that share threshold and options. Source: the folder `custom-evaluators` of that tool.
    """

    @lru_cache(maxsize=256)
    def build(settings: str) -> Callable[..., object]:
        return made(**json.loads(settings))

    def judge(options: M365CustomOptions, fields: Fields) -> Verdict:
        score = build(options.model_dump_json())
        return make_verdict(score(**{key: fields[field] or "" for key, field in _CALLED.items()}))

    return RowEvaluator(
        name=name,
        summary=f"The custom evaluator {name}.",
        needs=("response",),
        wants=("query", "expected_response", "context"),
        options=M365CustomOptions,
        scale=ANY_NUMBER,
        threshold=_DEFAULT_THRESHOLD,
        judge=judge,
    )
