"""Conversations with a model: side by side, the turns of each in order with their history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, groupby
from typing import TYPE_CHECKING, Literal, Protocol

import polars as pl

from assay.chat.parameters import build_body
from assay.chat.pool import run_jobs
from assay.contracts.chat import Chat, ChatRequest, text_message
from assay.contracts.json_text import dump_json
from assay.contracts.tables import conform
from assay.errors import CallError, ConfigError
from assay.targets.contract import ANSWERS
from assay.targets.messages import dump_items, to_chat_messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.config import RunConfig
    from assay.contracts.chat import ChatReply, Message

    Row = dict[str, object]


class ClosableChat(Chat, Protocol):
    """A chat that holds connections."""

    async def aclose(self) -> None:
        """Close them."""
        ...


@dataclass(frozen=True, slots=True)
class Turn:
    """What one row of ITEMS asks."""

    item_id: str
    turn: int
    query: str | None
    messages_json: str | None


@dataclass(frozen=True, slots=True)
class ConversationTarget:
    """Asks a model.

    Attributes:
        chat: How to ask it; closed with the target.
        model: Its name, for the record of the request.
        system: First system message of every conversation.
        concurrency: Conversations under way at any time.
    """

    chat: ClosableChat
    model: str
    system: str | None = None
    concurrency: int = 1

    async def fetch_samples(self, items: pl.DataFrame, on_done: Callable[[bool], None]) -> pl.DataFrame:
        """Ask every turn; after a failed turn the rest of its conversation is `turn_skipped`."""
        turns = [Turn(*row) for row in items.select("item_id", "turn", "query", "messages_json").iter_rows()]
        conversations = [list(group) for _, group in groupby(turns, key=lambda turn: turn.item_id)]

        async def answer(conversation: list[Turn]) -> list[Row]:
            return await self._fetch_conversation(conversation, on_done)

        answered = await run_jobs(conversations, answer, self.concurrency)
        rows = list(chain.from_iterable(answered))
        return conform(pl.DataFrame(rows, schema=dict(ANSWERS.columns)), ANSWERS)

    async def aclose(self) -> None:
        """Close the chat."""
        await self.chat.aclose()

    async def _fetch_conversation(self, turns: list[Turn], on_done: Callable[[bool], None]) -> list[Row]:
        history: list[Message] = []
        rows: list[Row] = []
        failed: int | None = None
        for turn in turns:
            if failed is not None:
                message = f"turn {failed} of this conversation failed"
                row = _fail(turn, "turn_skipped", message, status="skipped")
            else:
                row = await self._fetch_turn(turn, history)
                failed = None if row["status"] == "ok" else turn.turn
            rows.append(row)
            on_done(failed is None)
        return rows

    async def _fetch_turn(self, turn: Turn, history: list[Message]) -> Row:
        """Ask one turn and, when it is answered, extend the history by what was said."""
        messages = self._collect_messages(turn, history)
        if messages is None:
            return _fail(turn, "no_query", "neither a query nor a message of the user")
        request = ChatRequest(tuple(messages))
        asked: Row = {
            "request_json": dump_json(build_body(self.model, request)),
            "started_at": datetime.now(UTC),
        }
        try:
            reply = await self.chat.complete(request)
        except CallError as error:
            asked["finished_at"] = datetime.now(UTC)
            return _fail(turn, error.code, error.message, attempts=error.attempts) | asked
        history[:] = [*messages, text_message("assistant", reply.text)]
        return asked | _record(turn, reply)

    def _collect_messages(self, turn: Turn, history: list[Message]) -> list[Message] | None:
        """Return what to send: the turn's own messages, else the history and the query."""
        start = [text_message("system", self.system)] if self.system else []
        own = to_chat_messages(turn.messages_json) if turn.messages_json else []
        if own:
            return [*start, *own]
        if not (turn.query and turn.query.strip()):
            return None
        return [*(history or start), text_message("user", turn.query)]


def build_conversation(config: RunConfig, provider: Literal["openai", "azure"]) -> ConversationTarget:
    """Open the target that a configuration asks for.

    Raises:
        ConfigError: No model is named, or key or URL are missing.
    """
    from assay.chat.client import open_chat  # slow to import, and not needed for stored answers

    endpoint = config.target.endpoint
    if endpoint is None:
        raise ConfigError(f"target {provider!r} needs a model; name it with --model")
    endpoint = endpoint.model_copy(update={"provider": provider})
    chat = open_chat(endpoint, concurrency=config.concurrency, timeout_s=config.timeout_s)
    return ConversationTarget(chat, endpoint.model, config.target.system, config.concurrency)


def _record(turn: Turn, reply: ChatReply) -> Row:
    """Keep a reply; one that was cut off at the output limit is an error that keeps its text."""
    cut = reply.finish_reason == "length"
    return {
        "item_id": turn.item_id,
        "turn": turn.turn,
        "trial": 0,
        "output_text": reply.text,
        "output_items_json": dump_items(reply.text, reply.tool_calls_json),
        "tool_calls_json": reply.tool_calls_json,
        "status": "error" if cut else "ok",
        "error_code": "truncated" if cut else None,
        "error_message": "the answer ended at the output limit (finish_reason length)" if cut else None,
        "finish_reason": reply.finish_reason,
        "model": reply.model,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "cached_tokens": reply.cached_tokens,
        "reasoning_tokens": reply.reasoning_tokens,
        "latency_ms": reply.latency_ms,
        "attempts": reply.attempts,
        "from_ledger": False,
        "finished_at": datetime.now(UTC),
    }


def _fail(
    turn: Turn, code: str, message: str, *, status: Literal["error", "skipped"] = "error", attempts: int = 0
) -> Row:
    return {
        "item_id": turn.item_id,
        "turn": turn.turn,
        "trial": 0,
        "status": status,
        "error_code": code,
        "error_message": message,
        "attempts": attempts,
        "from_ledger": False,
    }
