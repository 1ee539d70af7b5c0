"""What the calls of a run have come to so far: counts, tokens, money."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.contracts.chat import Usage


@dataclass(slots=True)
class Meter:
    """Counts calls.

    Attributes:
        calls: Answers that came, whatever their worth.
        requests: Requests sent, retries included.
        refused: Requests that were told to come later (429, 503).
        failed: Calls given up.
        hits: Answers taken from the ledger.
        truncated: Answers that ended at the output limit.
        unpriced: Answers of models that no price is known of.
        usage: Tokens and money so far.
        before: Tokens and money of the run before it was resumed.
        before_calls: Answers of it that came before.
    """

    calls: int = 0
    requests: int = 0
    refused: int = 0
    failed: int = 0
    hits: int = 0
    truncated: int = 0
    unpriced: int = 0
    usage: Usage = field(default_factory=Usage)
    before: Usage = field(default_factory=Usage)
    before_calls: int = 0

    def begin(self, calls: int, usage: Usage) -> None:
        """Take what the run spent before, which counts in its budget."""
        self.before_calls, self.before = calls, usage

    def note_answer(self, usage: Usage) -> None:
        """Count an answer that was paid for."""
        self.calls += 1
        self.usage = self.usage.plus(usage)
        self.unpriced += usage.cost_usd is None
