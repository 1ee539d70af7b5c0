"""The history: Parquet parts, a commit per run, SQL over all of them."""
