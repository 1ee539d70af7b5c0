"""Panels: the judges of a run, opened for one evaluator of one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.chat.recording import RecordedChat
from evaluators.panel import Judging

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.config import RunConfig
    from assay.engine.recording import BatchRecorder
    from assay.engine.tools import Tools
    from evaluators.contract import Embed


def open_judging(
    config: RunConfig, tools: Tools, recorder: BatchRecorder, kind: str, on_done: Callable[[], None]
) -> Judging:
    """Return how judges are asked.

    Args:
        config: What was asked for.
        tools: Whom to ask.
        recorder: What finds and keeps the answers.
        kind: Who asks, such as the name and version of an evaluator; only its own answers are known to it.
        on_done: Called after each row that was put to the judges.
    """
    return Judging(
        tuple(RecordedChat(judge, recorder, f"judge {kind}") for judge in tools.judges),
        tools.ceiling,
        on_done,
        config.panel.repeats,
        config.panel.vote,
        _open_embed(tools, recorder),
    )


def _open_embed(tools: Tools, recorder: BatchRecorder) -> Embed | None:
    if tools.embedder is None:
        return None
    from assay.engine.embedding import RecordedEmbedder  # the client takes a second to import

    return RecordedEmbedder(tools.embedder, recorder).embed
