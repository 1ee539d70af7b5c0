"""`assay query`: SQL over all runs, read-only."""

from __future__ import annotations

from assay.cli.output import Output, write_frame
from assay.store.layout import open_store
from assay.store.query import query as query_store


def query(sql: str, /, *, timeout_s: float = 60.0, output: Output = Output()) -> None:
    """Answer one SQL query over runs, items, plan, samples, scores and summary.

    Examples:
        assay query "select evaluator, count(*) filter (where passed) from scores group by 1"

        assay query "from scores" -o scores.parquet

    Args:
        sql: One read-only statement.
        timeout_s: Seconds until the query is ended.
    """
    output.start_log()
    write_frame(query_store(open_store(output.store, create=False), sql, timeout_s=timeout_s), output)
