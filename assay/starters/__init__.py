"""Starter datasets, one M365 eval document per purpose, to be written in any dialect."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, TypeAlias

Template: TypeAlias = Literal["agent", "knowledge", "tools", "edge", "safety", "regression", "multi-turn"]


def read_starter(template: Template) -> bytes:
    """Return a starter document: JSON that the dialect `m365` reads without a notice."""
    return files(__name__).joinpath(f"{template}.json").read_bytes()
