"""Server-sent events, cut from a stream as it arrives."""

from __future__ import annotations

import codecs
import re

_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")  # a carriage return at the end may be half of an ending


class EventReader:
    """Cuts bytes into the data of events, as the HTML standard says.

    The data of an event that no blank line ends counts too, since many servers leave the last one out.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._data: list[str] = []
        self._is_first = True

    def feed(self, piece: bytes) -> list[str]:
        """Take bytes and return the data of the events that are whole."""
        text = self._decoder.decode(piece)
        if self._is_first and text:
            text, self._is_first = text.removeprefix("\ufeff"), False
        *lines, self._rest = _LINE_END.split(self._rest + text)
        return self._read(lines)

    def finish(self) -> list[str]:
        """Return the data of what the end of the stream completes."""
        lines = [self._rest.rstrip("\r"), ""]
        self._rest = ""
        return self._read(lines)

    def _read(self, lines: list[str]) -> list[str]:
        events: list[str] = []
        for line in lines:
            name, _, value = line.partition(":")
            if not line and self._data:
                events.append("\n".join(self._data))
                self._data = []
            elif name == "data":
                self._data.append(value.removeprefix(" "))
        return events
