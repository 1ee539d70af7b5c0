"""Graded: the judges that are nothing but their prompt file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.prompt_files import make_judge, read_prompt

if TYPE_CHECKING:
    from evaluators.contract import Evaluator

STEMS = (
    "relevance",
    "coherence",
    "similarity",
    "fluency",
    "retrieval",
    "response_completeness",
    "intent_resolution",
    "task_adherence",
    "task_completion",
    "customer_satisfaction",
    "deflection_rate",
    "local_violence",
    "local_sexual",
    "local_self_harm",
    "local_hate_unfairness",
    "local_protected_material",
    "local_code_vulnerability",
    "local_indirect_attack",
    "local_ungrounded_attributes",
    "local_groundedness_pro",
    "local_prohibited_actions",
    "local_sensitive_data_leakage",
)
"""Their prompt files, in the order of the catalog."""

EVALUATORS: tuple[Evaluator, ...] = tuple(make_judge(read_prompt(stem)) for stem in STEMS)
