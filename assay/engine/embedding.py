"""Embedding: vectors of texts from calls that are made once and kept in the ledger of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.chat.embeddings import embed_texts
from assay.chat.recording import ask_once
from assay.contracts.json_text import dump_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.chat.embeddings import EmbeddingModel, Vectors
    from assay.contracts.chat import ChatReply, Recorder

KIND = "embedding"  # vectors are the same whoever asks for them


@dataclass(frozen=True, slots=True)
class RecordedEmbedder:
    """A model that embeds nothing twice.

    Attributes:
        model: Who is asked.
        recorder: What is known.
    """

    model: EmbeddingModel
    recorder: Recorder

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text, in order; see `embed_texts`."""
        return await embed_texts(texts, self._ask)

    async def _ask(self, texts: Sequence[str]) -> ChatReply:
        request = dump_json(self.model.describe(texts))
        return await ask_once(self.recorder, KIND, request, lambda: self.model.ask(texts))
