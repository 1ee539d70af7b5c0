"""Data files that come with the package."""

from __future__ import annotations

import gzip
from importlib.resources import files


def read_shipped(name: str) -> str:
    """Return the text of a file in `data/`; one that ends in `.gz` is unpacked.

    Raises:
        FileNotFoundError: No such file.
    """
    data = files("evaluators.text").joinpath("data", name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode("utf-8")
