"""A target of your own: a function, and the same as a program.

`assay run data/csv/faq.csv --target python:docs/examples/targets/echo.py:answer`
`assay run data/csv/faq.csv --target cmd:'python3 docs/examples/targets/echo.py'`
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def answer(query: str, messages: Sequence[dict[str, object]], trial: int = 0) -> dict[str, object]:
    """Repeat the question; a parameter named like what is offered gets it."""
    return {
        "output_text": f"You asked: {query}",
        "model": f"echo-{trial}",
        "input_tokens": len(messages),
        "output_tokens": len(query.split()),
    }


async def answer_later(query: str) -> str:
    """Answer in the event loop; a text alone is an answer too."""
    return f"You asked: {query}"


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump(answer(asked["query"], asked["messages"], asked["trial"]), sys.stdout)
