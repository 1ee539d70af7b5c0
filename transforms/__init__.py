"""Frame in, frame out: mapping, items, plan, summary. No files, clock, network or randomness."""
