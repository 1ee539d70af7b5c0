"""Outcomes: what a verdict, or the failure of an evaluation, leaves in the columns of its row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from assay.contracts.chat import Usage
from assay.contracts.json_text import dump_json
from assay.contracts.tables import NOT_APPLICABLE
from assay.errors import CallError, NotApplicableError, SetupError, UndecidedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.chat import ChatReply
    from evaluators.contract import Verdict

Outcome: TypeAlias = "dict[str, object]"
"""Some columns of a result, for one row."""


def describe_failure(error: Exception | SystemExit) -> Outcome:
    """Say what failed, or why nothing applies; faults of the set-up are raised again, as they end the run."""
    if isinstance(error, SetupError | UndecidedError):
        raise error
    if isinstance(error, NotApplicableError):
        return {"error_code": NOT_APPLICABLE, "reason": _clean(str(error))}
    if isinstance(error, CallError):
        return {"error_code": error.code, "error_message": _clean(error.message)}
    try:
        told = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an exception of a user's own that cannot be written
        told = type(error).__name__
    return {"error_code": "evaluator_error", "error_message": _clean(told)}


def describe_verdict(verdict: Verdict) -> Outcome:
    """Return what a verdict says.

    Raises:
        ValueError: The score is NaN or infinite.
        TypeError: A part of the verdict is not what it should be.
    """
    score = None if verdict.score is None else float(verdict.score)
    if score is not None and not math.isfinite(score):
        raise ValueError(f"the score {score}")
    return {
        "score": score,
        "label": _clean(verdict.label),
        "reason": _clean(verdict.reason),
        **describe_details(verdict.details),
        "prompt_sha": verdict.prompt_sha,
    }


def describe_details(details: Mapping[str, object] | None) -> Outcome:
    """Return details as JSON."""
    return {"details_json": None if details is None else _clean(dump_json(details))}


def describe_replies(replies: Sequence[ChatReply]) -> Outcome:
    """Name the models that spoke, and add up time, tokens and money; null where no reply tells them."""
    spent = Usage()
    for reply in replies:
        spent = spent.plus(reply.usage)
    return {
        "judge_model": "+".join(dict.fromkeys(reply.model for reply in replies)) or None,
        "latency_ms": sum(reply.latency_ms for reply in replies) if replies else None,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost_usd": spent.cost_usd,
    }


def _clean(text: str | None) -> str | None:
    """Write half surrogates, which no column of text can hold, as escapes.

    Raises:
        TypeError: It is no text.
    """
    if text is None:
        return None
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's evaluator may say anything
        raise TypeError(f"a {type(text).__name__} where a text is due")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
