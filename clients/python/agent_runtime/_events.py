"""Server-sent events, from the bytes of an answer (WHATWG HTML, section 9.2.6), without I/O.

Guarantees: lines may end with CR, LF or CRLF; a part may end anywhere, also within a character; an event that is cut off
is not given; an event has a bound. Unlike the reader that httpx2 has, this one says which events have an id of their own:
only those are numbered by the server, and only after those a stream goes on.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: The largest event in bytes. The largest that the server sends has a step's text, of a few MiB.
MOST_EVENT_BYTES = 32 * 1024 * 1024

_ENDS = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """One event: its own id, if it has one, its name and its data."""

    id: str | None
    name: str
    data: str


class TooLong(Exception):  # noqa: N818
    """An event is longer than any that the server sends."""


class Reader:
    """Makes events of the parts of one answer."""

    def __init__(self) -> None:
        #: Milliseconds after which the server wants a client back, if it said so.
        self.retry_ms: int | None = None
        self._rest = b""
        self._begins = True
        self._after_return = False
        self._size = 0
        self._clear()

    def _clear(self) -> None:
        self._id: str | None = None
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, part: bytes) -> list[ServerSentEvent]:
        """The events that this part completes."""
        if self._after_return and part:
            # The line feed of a CRLF that was cut in two.
            part = part.removeprefix(b"\n")
            self._after_return = False
        if not part:
            return []
        text = self._rest + part
        if self._begins:
            if len(text) < 3 and _BYTE_ORDER_MARK.startswith(text):
                self._rest = text
                return []
            text = text.removeprefix(_BYTE_ORDER_MARK)
            self._begins = False
        if b"\r" in part or b"\r" in self._rest:
            self._after_return = text.endswith(b"\r")
            lines = _ENDS.split(text)
        else:
            lines = text.split(b"\n")
        self._rest = lines.pop()
        self._size += len(part)
        events = self._events(lines)
        if self._size > MOST_EVENT_BYTES:
            raise TooLong
        return events

    def _events(self, lines: list[bytes]) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        for line in lines:
            # The most frequent line comes first.
            if line.startswith(b"data: "):
                self._data.append(line[6:])
            elif line:
                self._line(line)
            else:
                if self._data:
                    data = b"\n".join(self._data).decode("utf-8", "replace")
                    events.append(ServerSentEvent(self._id, self._name or "message", data))
                self._clear()
                self._size = len(self._rest)
        return events

    def _line(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit():
            self.retry_ms = int(value)
