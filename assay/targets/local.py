"""Calls to what runs on this machine, functions and programs: within the limits of the run, never twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.contracts.hiding import find_secrets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from assay.chat.traffic import Traffic
    from assay.contracts.chat import ChatReply
    from assay.contracts.hiding import Secrets


@dataclass(frozen=True, slots=True)
class LocalSite:
    """Where a function or program is.

    Attributes:
        place: As the user named it.
        secrets: What no message may show.
    """

    place: str
    secrets: Secrets

    def hide_key(self, text: str) -> str:
        """Return the text with every secret of the environment replaced by `***`."""
        return self.secrets.hide(text)

    def explain(self, code: str, said: str) -> str:
        """Say what is wrong."""
        return f"{self.place}: {code}: {said}"


class LocalCaller:
    """Calls one function or program.

    Attributes:
        site: Where it is.
    """

    def __init__(self, place: str, traffic: Traffic, ceiling: int) -> None:
        """Open its gate.

        Args:
            place: As the user named it.
            traffic: What it shares with the other calls of the run.
            ceiling: Most calls under way at one time, where the user named none.
        """
        from assay.chat.caller import Caller  # slow to import, and not needed for stored answers

        self.site = LocalSite(place, find_secrets())
        self._caller = Caller(self.site, place, traffic.open_gate(place, ceiling), traffic, self.site.secrets)

    async def call(self, work: Callable[[], Awaitable[ChatReply]]) -> ChatReply:
        """Make one call.

        Raises:
            CallError: It failed, was late (`timeout`), or was not made because the run ends.
        """
        return await self._caller.call(work, retry=False)
