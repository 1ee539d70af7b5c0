"""Graded: the judges that are nothing but their prompt file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.prompt_files import make_judge, read_prompt

if TYPE_CHECKING:
    from evaluators.contract import Evaluator

STEMS = ("relevance", "coherence")
"""Their prompt files, in the order of the catalog."""

EVALUATORS: tuple[Evaluator, ...] = tuple(make_judge(read_prompt(stem)) for stem in STEMS)
