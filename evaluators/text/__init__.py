"""Texts as columns, as tokens, and what two of them have in common."""

from evaluators.text.columns import compose, fold_case

__all__ = ["compose", "fold_case"]
