"""When things run: Prefect flows, one file per entrypoint."""
