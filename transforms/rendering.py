"""Rendering: columns of text made of templates and the values of their placeholders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from transforms.templates import Reference, Template
    from transforms.values import Found

_ANY = "@"  # a column that gives constants as many rows as there are


def list_references(templates: Iterable[Template]) -> list[Reference]:
    """Return the different placeholders of templates, in order."""
    return list(dict.fromkeys(reference for template in templates for reference in template.references))


def render(template: Template) -> pl.Expr:
    """Return the expression of a template's text, for `fill_columns`.

    The text is null only where a sole placeholder is null.
    """
    sole = template.sole
    if sole is not None:
        return pl.col(f"@{sole}")
    return pl.concat_str(
        pl.lit(part) if isinstance(part, str) else pl.col(f"@{part}").fill_null("") for part in template.parts
    )


def fill_columns(
    rows: pl.DataFrame,
    columns: Mapping[str, pl.Expr],
    texts: Mapping[Reference, Found],
    typed: Mapping[Reference, Found],
) -> pl.DataFrame:
    """Evaluate columns over the values of placeholders.

    Args:
        rows: Where the expressions find other columns.
        columns: Name to expression; a placeholder is the column `@` or `#` and its name.
        texts: Values behind `@`.
        typed: Values behind `#`.

    Returns:
        The columns, and `error_code` and `error_message` as `map_fields` gives them.
    """
    known = [(f"@{reference}", found) for reference, found in texts.items()]
    known += [(f"#{reference}", found) for reference, found in typed.items()]
    problems = [
        pl.when(found.missing).then(pl.lit(f"missing {name[1:]}"))
        for name, found in known
        if found.missing.any()
    ]
    message = pl.coalesce(problems) if problems else pl.lit(None, pl.String)
    code = pl.when(message.is_not_null()).then(pl.lit("missing_field"))
    beside = rows.hstack([found.values.alias(name) for name, found in known])
    filled = {**columns, "error_code": code, "error_message": message, _ANY: pl.first()}
    return beside.select(**filled).drop(_ANY)
