"""What a score means: one file per evaluator, an explicit catalog, one runner."""
