"""Models behind OpenAI-compatible endpoints: one client, one pool of workers."""
