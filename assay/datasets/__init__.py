"""Readers of datasets and answer files: one file per dialect."""
