"""The guide to the evaluators: facts, options and modes of each, as the catalog has them."""

from __future__ import annotations

import json
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from evaluators.contract import ColumnEvaluator, EmbeddingEvaluator, JudgeEvaluator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic.fields import FieldInfo

    from evaluators.contract import Evaluator

Facts: TypeAlias = "dict[str, object]"

HEAD = """# Evaluators

Written by `assay evaluators --format md`; a test compares the two.

`NAME` in `--evaluators NAME` or in a dataset is the name or any alias. `--option NAME.option=JSON` sets an
option, and `--option NAME.threshold=0.7` the threshold; a score that reaches the threshold passes (where
lower is better: a score that stays at or below it). A null or missing field that is needed skips the row; a
blank reference skips it too, but for the mode `compat` of the text metrics, where it is text.

Text metrics have two modes, recorded in the details of every score: `compat` gives the numbers of the tool
whose name the evaluator bears, tokenisers and all; `unicode` treats every script alike (NFC, case folding,
words by UAX-29, scripts without spaces by character), and identical texts score 1.

The evaluators of UiPath take `compat`: `--option JsonEquals.compat=uipath` gives the scores of its own
evaluators, quirks included, `uipath-legacy` those of the older generation; without it the quirks are mended.
"""


def describe(evaluator: Evaluator) -> Facts:
    """Return what lists say of an evaluator."""
    mode = evaluator.options.model_fields.get("mode")
    return {
        "name": evaluator.name,
        "kind": _name_kind(evaluator),
        "needs": " ".join(evaluator.needs) or "-",
        "wants": " ".join(evaluator.wants) or "-",
        "scale": str(evaluator.scale),
        "threshold": "-" if evaluator.threshold is None else f"{evaluator.threshold:g}",
        "mode": "-" if mode is None else str(mode.default),
        "options": " ".join((*evaluator.options.model_fields, *evaluator.templates)) or "-",
        "aliases": " ".join(evaluator.aliases),
        "metric": evaluator.metric or evaluator.name,
        "higher_is_better": evaluator.higher_is_better,
        "version": evaluator.version,
        "summary": evaluator.summary,
    }


def _name_kind(evaluator: Evaluator) -> str:
    """Return what it works on, in a word."""
    match evaluator:
        case ColumnEvaluator():
            return "column"
        case JudgeEvaluator():
            return "judge"
        case EmbeddingEvaluator():
            return "embedding"
        case _:
            return "row"


def list_options(evaluator: Evaluator) -> list[Facts]:
    """Return name, type, default and description of every option, those that are templates last."""
    options: list[Facts] = [
        {
            "name": name,
            "type": _spell(field.annotation),
            "required": field.is_required(),
            "default": _default(field),
            "description": field.description or "",
        }
        for name, field in evaluator.options.model_fields.items()
    ]
    for name, field in evaluator.templates.items():
        told = f"where {field} comes from, such as {{{{item.{field}}}}}"
        options.append(
            {"name": name, "type": "template", "required": False, "default": None, "description": told}
        )
    return options


def write_guide(evaluators: Sequence[Evaluator]) -> str:
    """Write the guide as Markdown: a table of all evaluators and a section on each."""
    columns = ("name", "needs", "scale", "threshold", "mode", "summary")
    rows = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for evaluator in evaluators:
        facts = describe(evaluator)
        rows.append("| " + " | ".join(_cell(facts[column]) for column in columns) + " |")
    return "\n".join([HEAD, *rows, "", *map(write_section, evaluators)])


def write_section(evaluator: Evaluator) -> str:
    """Write what there is to say of one evaluator as Markdown."""
    facts = describe(evaluator)
    lower = "" if evaluator.higher_is_better else ", lower is better"
    lines = [
        f"## {evaluator.name}",
        "",
        evaluator.summary,
        "",
        *([f"- also known as {_names(evaluator.aliases)}"] if evaluator.aliases else []),
        f"- needs {_names(evaluator.needs) or 'no field'}",
        *([f"- reads {_names(evaluator.wants)} where it is there"] if evaluator.wants else []),
        f"- score {facts['scale']}{lower}; passes by default: {facts['threshold']}",
    ]
    if len(evaluator.threshold_names) > 1:
        lines.append(f"- the threshold may be called {_names(evaluator.threshold_names)}")
    if evaluator.metric:
        lines.append(f"- metric `{evaluator.metric}`")
    if evaluator.aggregate is not None:
        lines.append(
            "- figures about all rows of a run stand in `summary`: `metric` names one, `mean` is its value"
        )
    return "\n".join([*lines, *_write_options(list_options(evaluator)), ""])


def _write_options(options: Sequence[Facts]) -> list[str]:
    if not options:
        return []
    lines = ["", "| option | values | default | |", "|---|---|---|---|"]
    for each in options:
        default = "*required*" if each["required"] else f"`{json.dumps(each['default'])}`"
        cells = [f"`{each['name']}`", each["type"], default, each["description"]]
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return lines


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|")


def _default(field: FieldInfo) -> object:
    """Return the default as JSON has it, null where the option is required."""
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined:
        return None
    if isinstance(default, BaseModel):
        return default.model_dump(mode="json")
    return default


def _spell(annotation: object) -> str:
    """Write a type as a user would: `true|false`, `text`, the values of a choice, `list of text`."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return "|".join(map(str, parts))
    if origin is Annotated:
        return _spell(parts[0])
    if origin in (Union, UnionType):
        return "|".join(map(_spell, parts))
    if origin in (list, tuple):
        return f"list of {_spell(parts[0])}"
    names: dict[object, str] = {
        bool: "true|false",
        str: "text",
        NoneType: "null",
        int: "integer",
        float: "number",
    }
    return names.get(annotation, "object")
