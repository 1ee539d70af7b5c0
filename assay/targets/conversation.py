"""Conversations with whatever answers: side by side, the turns of each in order with their history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, groupby
from typing import TYPE_CHECKING, Literal

import polars as pl

from assay.chat.halt import NEVER_ASKED
from assay.chat.pool import run_jobs
from assay.chat.recording import ask_once
from assay.contracts.chat import text_message
from assay.contracts.tables import conform
from assay.errors import CallError
from assay.targets.contract import ANSWERS, Ask
from assay.targets.messages import dump_items, to_chat_messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.chat import ChatReply, Message
    from assay.targets.contract import Answerer, Work

    Row = dict[str, object]
    Turn = Mapping[str, object]

KIND = "target"  # of its calls in the ledger


@dataclass(frozen=True, slots=True)
class ConversationTarget:
    """Holds conversations.

    Attributes:
        answerer: What answers a turn; closed with the target.
        system: First system message of every conversation.
    """

    answerer: Answerer
    system: str | None = None

    async def fetch_samples(self, items: pl.DataFrame, work: Work) -> pl.DataFrame:
        """Ask every turn; after a failed turn the rest of its conversation is `turn_skipped`."""
        turns = items.iter_rows(named=True)
        conversations = [list(group) for _, group in groupby(turns, key=lambda turn: turn["item_id"])]
        jobs = [(conversation, trial) for conversation in conversations for trial in range(work.trials)]

        async def hold(job: tuple[Sequence[Turn], int]) -> list[Row]:
            return await self._hold(*job, work)

        answered = await run_jobs(jobs, hold, work.limit)
        rows = list(chain.from_iterable(answered))
        return conform(pl.DataFrame(rows, schema=dict(ANSWERS.columns)), ANSWERS)

    async def aclose(self) -> None:
        """Close what answers."""
        await self.answerer.aclose()

    async def _hold(self, turns: Sequence[Turn], trial: int, work: Work) -> list[Row]:
        """Hold one conversation, turn after turn."""
        rows: list[Row] = []
        history: list[Message] = []
        failed: object = None
        for turn in turns:
            if failed is not None:
                message = f"turn {failed} of this conversation failed"
                row = _fail(CallError("turn_skipped", message, attempts=0), status="skipped")
            else:
                row = await self._fetch_turn(turn, trial, history, work)
                failed = None if row["status"] == "ok" else turn["turn"]
            rows.append({"item_id": turn["item_id"], "turn": turn["turn"], "trial": trial} | row)
            work.on_done(failed is None)
        return rows

    async def _fetch_turn(self, turn: Turn, trial: int, history: list[Message], work: Work) -> Row:
        """Ask one turn and, when it is answered, extend the history by what was said."""
        messages = self._collect_messages(turn, history)
        if messages is None:
            return _fail(CallError("no_query", "neither a query nor a message of the user", attempts=0))
        ask = Ask(tuple(messages), turn, trial)
        request = self.answerer.describe(ask)
        asked: Row = {"request_json": request, "started_at": datetime.now(UTC)}
        try:
            reply = await ask_once(work.recorder, KIND, request, lambda: self.answerer.answer(ask))
        except CallError as error:
            if error.code in NEVER_ASKED:
                return _fail(error, status="skipped")
            return _fail(error) | asked | {"finished_at": datetime.now(UTC)}
        history[:] = [*messages, text_message("assistant", reply.text)]
        return asked | _record(reply) | {"status": "ok", "attempts": reply.attempts}

    def _collect_messages(self, turn: Turn, history: list[Message]) -> list[Message] | None:
        """Return what to send: the turn's own messages, else the history and the query."""
        start = [text_message("system", self.system)] if self.system else []
        messages_json, query = turn["messages_json"], turn["query"]
        own = to_chat_messages(messages_json) if isinstance(messages_json, str) else []
        if own:
            return [*start, *own]
        if not (isinstance(query, str) and query.strip()):
            return None
        return [*(history or start), text_message("user", query)]


def _record(reply: ChatReply) -> Row:
    """Return what a reply leaves in its row."""
    usage = reply.usage
    return {
        "output_text": reply.text,
        "output_items_json": reply.output_items_json or dump_items(reply.text, reply.tool_calls_json),
        "tool_calls_json": reply.tool_calls_json,
        "retrieval_json": reply.retrieval_json,
        "finish_reason": reply.finish_reason,
        "model": reply.model,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost_usd": usage.cost_usd,
        "latency_ms": reply.latency_ms,
        "from_ledger": reply.from_ledger,
        "finished_at": datetime.now(UTC),
    }


def _fail(error: CallError, *, status: Literal["error", "skipped"] = "error") -> Row:
    """Return the row of a call that failed, with what was answered all the same."""
    told: Row = {"from_ledger": False} if error.reply is None else _record(error.reply)
    return told | {
        "status": status,
        "error_code": error.code,
        "error_message": error.message,
        "attempts": error.attempts,
    }
