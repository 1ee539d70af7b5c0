"""What the calls of a run have come to so far: counts, tokens, money."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.contracts.chat import Usage

if TYPE_CHECKING:
    from assay.chat.halt import Halt
    from assay.config import Limits


@dataclass(slots=True)
class Meter:
    """Counts calls, and stops the run when its budget is spent.

    Attributes:
        limits: The budget among them.
        halt: Told when it is spent.
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

    limits: Limits
    halt: Halt
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

    def check_budget(self, under_way: int) -> None:
        """Stop the run when what is under way will spend the rest of the budget.

        Args:
            under_way: Calls that were sent and not answered yet; each is taken to cost what the others did.
        """
        limits, spent = self.limits, self.before.plus(self.usage)
        foreseen = 1 + under_way / max(self.before_calls + self.calls, 1)
        money = spent.cost_usd or 0.0
        if limits.max_cost is not None and money * foreseen >= limits.max_cost:
            told = f"another call would pass --max-cost {limits.max_cost:g}; {money:.4f} US dollars are spent"
            self.halt.stop("budget", told)
        tokens = spent.total
        if limits.max_tokens is not None and tokens * foreseen >= limits.max_tokens:
            told = f"another call would pass --max-tokens-total {limits.max_tokens}; {tokens} are spent"
            self.halt.stop("budget", told)
