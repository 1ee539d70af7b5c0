"""`assay query`: SQL over all runs, read-only."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from assay.cli.output import Output, write_frame
from assay.store.catalog import list_problems
from assay.store.layout import open_store
from assay.store.query import query as query_store

LONGEST_S = 86_400.0


def query(
    sql: str,
    /,
    *,
    timeout_s: Annotated[float, Parameter(name="--timeout", validator=Number(gt=0, lte=LONGEST_S))] = 60.0,
    output: Output = Output(),
) -> None:
    """Answer one SQL query over runs, items, plan, samples, scores and summary.

    Args:
        sql: One read-only statement.
        timeout_s: Seconds until the query is ended.
    """
    output.start_log()
    store = open_store(output.store, create=False)
    for problem in list_problems(store):
        sys.stderr.write(f"warning: left out: {problem}\n")
    write_frame(query_store(store, sql, timeout_s=timeout_s), output)
