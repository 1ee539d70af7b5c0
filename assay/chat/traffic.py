"""What all calls of a run share: the gate of each endpoint, the meter, the prices and the word to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.chat.budget import Budget
from assay.chat.gate import Gate
from assay.chat.halt import Halt
from assay.chat.meter import Meter
from assay.chat.prices import read_prices

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from assay.config import RunConfig

    Sleep = Callable[[float], Awaitable[object]]

FIRST_UNDER_BUDGET = 2  # calls under way while nobody knows yet what one costs; it doubles from there


class Traffic:
    """The calls of one run.

    Attributes:
        run_id: The run; empty outside of one.
        halt: The word to stop.
        meter: What was spent.
        budget: What may still be spent.
        prices: What a token costs.
        limits: How fast and how far calls may go.
        timeout_s: Seconds that one call may take.
        ceiling: Most calls under way at one endpoint; None: chosen by the kind of target.
    """

    def __init__(self, config: RunConfig, *, run_id: str = "", sleep: Sleep | None = None) -> None:
        """Read the prices.

        Args:
            config: What was asked for.
            run_id: The run; empty outside of one.
            sleep: How to wait between attempts; None: until the time is over or the word to stop comes.

        Raises:
            ConfigError: The file of prices cannot be read.
        """
        self.limits, self.timeout_s, self.ceiling = config.limits, config.timeout_s, config.concurrency
        self.run_id = run_id
        self.halt = Halt()
        self.meter = Meter()
        self.budget = Budget(config.limits, self.meter, self.halt)
        self.prices = read_prices(config.limits.prices)
        self.sleep: Sleep = sleep or self.halt.sleep
        self._gates: dict[str, Gate] = {}

    def open_gate(self, name: str, ceiling: int) -> Gate:
        """Return the gate of an endpoint, the same for all that call it.

        Args:
            name: What tells the endpoint from others.
            ceiling: Most calls under way at one time, where the user named none.
        """
        if name not in self._gates:
            limits = self.limits
            self._gates[name] = Gate(
                self.ceiling or ceiling,
                self.halt,
                rpm=limits.rpm,
                tpm=limits.tpm,
                longest_s=limits.max_wait_s,
            )
            if limits.max_cost is not None or limits.max_tokens is not None:
                self._gates[name].limit = min(self._gates[name].limit, FIRST_UNDER_BUDGET)
        return self._gates[name]

    def name_gate(self, gate: Gate) -> str:
        """Return what tells the endpoint of a gate from others."""
        return next((name for name, each in self._gates.items() if each is gate), "")

    @property
    def gates(self) -> tuple[Gate, ...]:
        """All gates that were opened."""
        return tuple(self._gates.values())
