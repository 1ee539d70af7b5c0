"""`assay evaluators`: what can be scored."""

from __future__ import annotations

import json
from types import NoneType
from typing import Literal, get_args, get_origin

import polars as pl

from assay.cli.output import Output, write_frame
from evaluators.catalog import BUILT_IN, find_evaluator
from evaluators.contract import ColumnEvaluator, Evaluator, JudgeEvaluator


def evaluators(name: str | None = None, /, *, output: Output = Output()) -> None:
    """List the evaluators, or explain one with its options.

    Args:
        name: Name or alias of one evaluator.
    """
    output.start_log()
    if name is None:
        listed = pl.DataFrame([_describe(each) for each in BUILT_IN], infer_schema_length=None)
        brief = output.form in {"table", "md"}
        write_frame(listed.drop("aliases", "version", "options") if brief else listed, output)
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
            {"property": f"option {o['name']}", "value": f"{o['type']}, default {json.dumps(o['default'])}"}
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
    return [
        {
            "name": name,
            "type": _spell(field.annotation),
            "default": field.default,
            "description": field.description or "",
        }
        for name, field in evaluator.options.model_fields.items()
    ]


def _spell(annotation: object) -> str:
    """Write a type as a user would: `true|false`, `text`, or the values of a choice."""
    if get_origin(annotation) is Literal:
        return "|".join(map(str, get_args(annotation)))
    if parts := get_args(annotation):
        return "|".join(_spell(part) for part in parts)
    names: dict[object, str] = {
        bool: "true|false",
        str: "text",
        NoneType: "null",
        int: "integer",
        float: "number",
    }
    return names.get(annotation, str(annotation))
