"""`assay evaluators`: what can be scored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import polars as pl

from assay.cli.guide import describe, list_options, write_guide, write_section
from assay.cli.judges_guide import write_judges
from assay.cli.output import Output, emit, write_frame
from assay.engine.own import open_catalog
from assay.settings import make_config

if TYPE_CHECKING:
    from evaluators.contract import Evaluator

Kind = Literal["column", "row", "judge", "embedding"]


def evaluators(
    name: str | None = None,
    /,
    *,
    evaluator: tuple[str, ...] = (),
    kind: Kind | None = None,
    output: Output = Output(),
) -> None:
    """List the evaluators, or explain one with its options.

    With --format md the whole catalog is explained, with --kind judge what judges are told.

    Args:
        name: Name or alias of one evaluator.
        evaluator: FILE.py:NAME, FILE.md or folder of an evaluator of your own; repeatable.
        kind: Only those that work on columns, on rows, or ask a model to judge or to embed.
    """
    output.start_log()
    catalog = open_catalog(make_config([], {"own_evaluators": list(evaluator)}))
    if name is not None:
        _explain(catalog.find(name), output)
    elif output.form == "md":
        write = write_judges if kind == "judge" else write_guide
        emit(write(catalog.evaluators), output)
    else:
        known = [facts for each in catalog.evaluators if kind in {None, (facts := describe(each))["kind"]}]
        listed = pl.DataFrame(known, infer_schema_length=None)
        brief = output.form == "table"
        hidden = ("aliases", "version", "options", "wants", "metric", "higher_is_better")
        write_frame(listed.drop(hidden) if brief else listed, output)


def _explain(evaluator: Evaluator, output: Output) -> None:
    facts, options = describe(evaluator), list_options(evaluator)
    if output.form == "json":
        write_frame(pl.DataFrame(), output, document=facts | {"option_list": options})
        return
    if output.form == "md":
        emit(write_section(evaluator), output)
        return
    rows = [(key, str(value)) for key, value in facts.items()]
    for each in options:
        default = "required" if each["required"] else f"default {json.dumps(each['default'])}"
        rows.append((f"option {each['name']}", f"{each['type']}, {default}: {each['description']}"))
    schema = {"property": pl.String, "value": pl.String}
    write_frame(pl.DataFrame(rows, schema=schema, orient="row"), output)
