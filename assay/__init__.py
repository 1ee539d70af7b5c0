"""Score the answers of LLMs and agents in batches, on dataframes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.api import Run, get_run, load, query, run

__all__ = ["Run", "get_run", "load", "query", "run"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the names above have their own types
    """Import the public names when they are first used, so that `import assay` stays quick."""
    if name in __all__:
        from assay import api

        return getattr(api, name)
    raise AttributeError(f"module 'assay' has no attribute {name!r}; it offers {', '.join(__all__)}")
