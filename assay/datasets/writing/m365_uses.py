"""Uses of evaluators, as an eval document names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.datasets.writing.cases import M365

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.contracts.documents import EvaluatorUse
    from assay.contracts.json_text import JsonValue
    from assay.datasets.writing.cases import JsonObject
    from assay.datasets.writing.contract import Losses

_WHOLE = {
    "response": "{{sample.output_object}}",
    "expected_response": "{{item.expectedOutput}}",
}


def name_uses(uses: Iterable[EvaluatorUse], dialect: str, losses: Losses, place: str = "") -> JsonObject:
    """Return evaluator names with their options.

    Those of an eval document stay. An exact match of the whole output with the expected one, of a UiPath
    project, becomes ExactMatch; every other one has no counterpart.

    Args:
        uses: The evaluators.
        dialect: The form of the file that names them.
        losses: Takes those without a counterpart.
        place: The item that names them; empty for the file.
    """
    if dialect == M365:
        return {use.evaluator: dict(use.options) for use in uses}
    named: JsonObject = {}
    for use in uses:
        if _is_exact(use):
            named["ExactMatch"] = {"case_sensitive": use.options.get("case_sensitive", False)}
        else:
            losses.add(f"evaluator {use.name or use.evaluator}", "left out; it has no counterpart", place)
    return named


def _is_exact(use: EvaluatorUse) -> bool:
    options: dict[str, JsonValue] = {key: value for key, value in use.options.items() if value}
    exact = use.evaluator == "uipath-exact-match" and use.mapping == _WHOLE
    return exact and options.keys() <= {"case_sensitive"}
