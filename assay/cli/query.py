"""`assay query`: SQL over all runs, read-only."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from assay.cli.output import Output, write_frame
from assay.store.layout import open_store
from assay.store.query import query as query_store


def query(
    sql: str, /, *, timeout_s: Annotated[float, Parameter(name="--timeout")] = 60.0, output: Output = Output()
) -> None:
    """Answer one SQL query over runs, items, plan, samples, scores and summary.

    Args:
        sql: One read-only statement.
        timeout_s: Seconds until the query is ended.
    """
    output.start_log()
    write_frame(query_store(open_store(output.store, create=False), sql, timeout_s=timeout_s), output)
