"""What a target is: something that answers every turn of whole conversations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from assay.contracts.tables import SAMPLES, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from assay.chat.traffic import Traffic
    from assay.config import RunConfig
    from assay.contracts.chat import ChatReply, Message, Recorder

ANSWERS = Table(
    name="answers",
    columns={name: dtype for name, dtype in SAMPLES.columns.items() if name != "run_id"},
    nullable=SAMPLES.nullable,
    key=tuple(name for name in SAMPLES.key if name != "run_id"),
)


@dataclass(frozen=True, slots=True)
class Work:
    """How answers are asked for and told of.

    Attributes:
        recorder: What is known already, and where answers are kept.
        on_done: Called once per turn and trial, as answers arrive, with whether the turn is ok.
        trials: How often every conversation is held.
        limit: Conversations under way at one time.
    """

    recorder: Recorder
    on_done: Callable[[bool], None]
    trials: int = 1
    limit: int = 1


@dataclass(frozen=True, slots=True)
class Ask:
    """One turn that wants an answer.

    Attributes:
        messages: The conversation so far in chat-completions form, system message and question included.
        row: The row of ITEMS by column.
        trial: Which time the conversation is held, from 0.
    """

    messages: tuple[Message, ...]
    row: Mapping[str, object]
    trial: int = 0


class Answerer(Protocol):
    """Something that answers one turn: a model, a function, a program, an HTTP service."""

    def describe(self, ask: Ask) -> str:
        """Return the request as JSON without secrets; it is stored, and its hash is the key of the answer."""
        ...

    async def answer(self, ask: Ask) -> ChatReply:
        """Answer one turn.

        Raises:
            CallError: This turn failed.
            EndpointError: What answers is wrongly set up; no further call makes sense.
        """
        ...

    async def aclose(self) -> None:
        """Release what is open."""
        ...


class Target(Protocol):
    """Where answers come from; used for one run, then closed."""

    async def fetch_samples(self, items: pl.DataFrame, work: Work) -> pl.DataFrame:
        """Answer every turn.

        Args:
            items: Table ITEMS: whole conversations, turns ascending. A column `output_items_json`
                may come with it.
            work: How.

        Returns:
            Table ANSWERS, which is SAMPLES without `run_id`: the rows of `items` in their order, once per
            trial of their conversation. A failed turn is a row with status `error` or `skipped`.

        Raises:
            EndpointError: Key, model or URL are wrong; no further call makes sense.
            StoreError: An answer cannot be kept.
        """
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


@dataclass(frozen=True, slots=True)
class TargetKind:
    """One kind of target.

    Attributes:
        name: Name in the configuration.
        summary: One sentence for lists and help.
        build: From a configuration and the traffic of the run to what answers a turn; raises ConfigError
            before anything is sent. None: the answers are stored.
    """

    name: str
    summary: str
    build: Callable[[RunConfig, Traffic], Answerer] | None
