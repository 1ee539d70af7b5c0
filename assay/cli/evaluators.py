"""`assay evaluators`: what can be scored."""

from __future__ import annotations

import polars as pl
from evaluators.catalog import BUILT_IN, find_evaluator

from assay.cli.output import Output, write_frame
from evaluators.contract import ColumnEvaluator, Evaluator, JudgeEvaluator


def evaluators(name: str | None = None, /, *, output: Output | None = None) -> None:
    """List the evaluators, or explain one with its options.

    Examples:
        assay evaluators

        assay evaluators PartialMatch

    Args:
        name: Name or alias of one evaluator.
    """
    output = output or Output()
    output.start_log()
    if name is None:
        write_frame(pl.DataFrame([_describe(each) for each in BUILT_IN], infer_schema_length=None), output)
        return
    evaluator = find_evaluator(name)
    document = _describe(evaluator) | {"option_list": _options(evaluator)}
    if output.form == "json":
        write_frame(pl.DataFrame(), output, document=document)
        return
    facts = pl.DataFrame(
        {
            "property": list(map(str, _describe(evaluator))),
            "value": [str(v) for v in _describe(evaluator).values()],
        }
    )
    options = pl.DataFrame(
        [
            {"property": f"option {o['name']}", "value": f"{o['type']}, default {o['default']}"}
            for o in _options(evaluator)
        ],
        schema=facts.schema,
    )
    write_frame(pl.concat([facts, options]), output)


def _describe(evaluator: Evaluator) -> dict[str, object]:
    kind = "judge" if isinstance(evaluator, JudgeEvaluator) else "row"
    return {
        "name": evaluator.name,
        "kind": "column" if isinstance(evaluator, ColumnEvaluator) else kind,
        "needs": " ".join(evaluator.needs),
        "scale": str(evaluator.scale),
        "threshold": "-" if evaluator.threshold is None else f"{evaluator.threshold:g}",
        "options": " ".join(evaluator.options.model_fields) or "-",
        "aliases": " ".join(evaluator.aliases),
        "version": evaluator.version,
        "summary": evaluator.summary,
    }


def _options(evaluator: Evaluator) -> list[dict[str, object]]:
    schema = evaluator.options.model_json_schema().get("properties", {})
    return [
        {
            "name": name,
            "type": _type(entry),
            "default": entry.get("default"),
            "description": entry.get("description", ""),
        }
        for name, entry in schema.items()
    ]


def _type(entry: dict[str, object]) -> str:
    if "enum" in entry:
        return " | ".join(map(str, entry["enum"])) if isinstance(entry["enum"], list) else "text"
    kinds = entry.get("anyOf")
    if isinstance(kinds, list):
        return " | ".join(str(kind.get("type")) for kind in kinds)
    return str(entry.get("type", "any"))
