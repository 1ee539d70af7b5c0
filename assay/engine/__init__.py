"""One run in three steps: prepare, run a batch, commit."""
