"""Score the answers of LLMs and agents in batches, on dataframes."""
