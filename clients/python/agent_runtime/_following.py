"""Following a stream through cuts, restarts and replicas, without I/O.

Guarantees: a caller gets each numbered event once and in order, whatever cuts the connection, and each piece of text once:
after a cut the server sends the text of a step under way again from its beginning, of which what was given is left out.
A stream ends with its run, with an error that coming back does not mend, or after `MOST_FAILURES` connections in a row
that failed or brought not one byte.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from ._errors import AgentRuntimeError, DeadlineError, InvalidError, NetworkError, ProtocolError
from ._events import Reader, ServerSentEvent, TooLong
from ._json import json_object
from ._options import Answer, CallOptions, Settings, authorization, known
from ._protocol import USER_AGENT, Outgoing, error_of, may_repeat, network_error, query_text, retry_after
from ._record import Record

#: Connections in a row that fail or bring not one byte.
MOST_FAILURES = 20
#: Seconds without a byte: three of the server's comments.
MAX_SILENCE = 45.0
#: Seconds: the first pause, if the server says nothing else; what it grows to; and what the server may ask for at most.
_RETRY = 2.0
_LONGEST_PAUSE = 15.0
_LONGEST_WAIT = 60.0

_ENDS_OF_A_RUN = frozenset({"run.completed", "run.failed", "run.cancelled"})


class Texts:
    """How much of each step's text was given."""

    def __init__(self) -> None:
        #: By step: the attempt, and the characters of it that were given. An attempt that is over has -1.
        self._given: dict[int, tuple[int, int]] = {}

    def step(self, kind: str, data: Mapping[str, Any]) -> None:
        """A numbered event of a step."""
        step, attempt = data.get("step"), data.get("attempt")
        if isinstance(step, int) and isinstance(attempt, int):
            is_under_way = kind in ("step.started", "step.restarted")
            self._given[step] = (attempt, 0 if is_under_way else -1)

    def rest(self, delta: dict[str, Any]) -> dict[str, Any] | None:
        """What is new of a piece of text, or None."""
        step, attempt, offset, text = (delta.get(name) for name in ("step", "attempt", "offset", "text"))
        if not (
            isinstance(step, int) and isinstance(attempt, int) and isinstance(offset, int) and isinstance(text, str)
        ):
            return delta
        newest, given = self._given.get(step, (attempt, 0))
        if attempt < newest or (attempt == newest and given < 0):
            return None
        if attempt > newest:
            given = 0
        end = offset + len(text)
        self._given[step] = (attempt, max(given, end))
        if offset >= given:
            return delta
        return {**delta, "offset": given, "text": text[given - offset :]} if end > given else None


class Following:
    """Where a reader of a stream stands."""

    def __init__(
        self,
        settings: Settings,
        path: str,
        make: Callable[[dict[str, Any]], Any],
        *,
        query: Mapping[str, Any] | None = None,
        after: int | None,
        max_silence: float,
        timeout: float | None = None,
        options: CallOptions | None = None,
    ) -> None:
        if max_silence <= 0:
            raise InvalidError(f"max_silence is {max_silence}: give seconds above 0.")
        options = known(options, ("headers", "on_answer"))
        self._settings = settings
        self._path = path
        self._query = dict(query or {})
        self._make = make
        self._max_silence = max_silence
        self._timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._headers = {name.lower(): value for name, value in settings.headers.items()}
        self._headers |= {"accept": "text/event-stream", "user-agent": USER_AGENT, "accept-encoding": "identity"}
        self._headers |= {name.lower(): value for name, value in (options.get("headers") or {}).items()}
        self._on_answer = options.get("on_answer") or settings.on_answer
        self._last = after
        self._reader = Reader()
        self._texts = Texts()
        self._failures = 0
        self._connections = 0
        self._retry = _RETRY
        self._run_ended = False
        self._has_begun = False
        #: Nothing comes any more.
        self.is_over = False
        #: The server wants the reader to come back.
        self.is_to_reopen = False

    @property
    def silence(self) -> float:
        """Seconds until a connection counts as dead."""
        if self._deadline is None:
            return self._max_silence
        return min(self._max_silence, max(0.001, self._deadline - time.monotonic()))

    def begin(self, token: object) -> Outgoing:
        """Begins a connection."""
        self._check_deadline()
        self._reader = Reader()
        self.is_to_reopen = False
        self._connections += 1
        query = dict(self._query)
        headers = {**self._headers, **authorization(token)}
        if self._last is not None:
            # Both: the header goes before, and a proxy may take it away.
            query["after"] = self._last
            headers["last-event-id"] = str(self._last)
        url = f"{self._settings.base_url}{self._path}{query_text(query)}"
        return Outgoing("GET", url, headers, None, self.silence)

    def opened(self, status: int, headers: Mapping[str, str]) -> bool:
        """Whether the answer is a stream."""
        if self._on_answer is not None:
            self._on_answer(Answer("GET", self._path, status, headers, self._connections))
        if status != 200:
            return False
        kind = headers.get("content-type", "")
        if kind.partition(";")[0].strip().lower() != "text/event-stream":
            raise ProtocolError(f"The answer of GET {self._path} is no stream, but {kind or 'nothing'}.", status=status)
        return True

    def feed(self, part: bytes) -> list[Any]:
        """The events to give of a part of the stream."""
        if part:
            # Also a sign of life: a run may be quiet for days, and its connections do not last as long.
            self._failures = 0
        try:
            events = self._reader.feed(part)
        except TooLong as fault:
            raise ProtocolError(f"An event of GET {self._path} is too long.") from fault
        if self._reader.retry_ms is not None:
            self._retry = min(self._reader.retry_ms / 1000, _LONGEST_WAIT)
        given: list[Any] = []
        for event in events:
            if self.is_over or self.is_to_reopen:
                break
            raw = self._taken(event)
            if raw is not None:
                given.append(self._make(raw))
        self._check_deadline()
        return given

    def _taken(self, event: ServerSentEvent) -> dict[str, Any] | None:
        try:
            data = json.loads(event.data)
        except (ValueError, RecursionError) as fault:
            raise ProtocolError(f"An event of GET {self._path} is no JSON.") from fault
        if event.id is None:
            return self._passing(event.name, data)
        if not (event.id.isascii() and event.id.isdecimal() and len(event.id) < 20):
            raise ProtocolError(f"An event of GET {self._path} has an id that is no number.")
        number = int(event.id)
        if event.name == "stream.start":
            # Where it begins is told once, and is no place to go on after if the caller had gone further.
            is_first, self._has_begun = not self._has_begun, True
            self._last = number if self._last is None else self._last
            return {"kind": event.name, "data": data} if is_first else None
        if self._last is not None and number <= self._last:
            return None
        self._last = number
        fields = json_object(data)
        if fields is None:
            raise ProtocolError(f"An event of GET {self._path} is no object.")
        if event.name in _ENDS_OF_A_RUN:
            self._run_ended = True
        content = json_object(fields.get("data"))
        if event.name.startswith("step.") and content is not None:
            self._texts.step(event.name, content)
        return fields

    def _passing(self, name: str, data: Any) -> dict[str, Any] | None:
        fields = json_object(data) or {}
        if name == "stream.end":
            self._end(fields.get("reason"))
            return None
        if name == "stream.reset":
            self.is_to_reopen = True
            return None
        if name == "text.delta":
            rest = self._texts.rest(fields)
            return None if rest is None else {"kind": name, "data": rest}
        if name == "reasoning.delta":
            return {"kind": name, "data": fields}
        return {"kind": name, "data": data}

    def _end(self, reason: object) -> None:
        if reason == "run-finished":
            self.is_over = True
        else:
            # Come back. Where the caller may not, or its token has ended, the server says so.
            self.is_to_reopen = True

    def cut(self, fault: Exception | None) -> float:
        """The connection ended, or failed: seconds until the next one, or an error."""
        if self._run_ended:
            # After the last event of a run no other one follows.
            self.is_over = True
            return 0.0
        return self._again(fault, None, None)

    def refused(self, status: int, headers: Mapping[str, str], content: bytes) -> float:
        """There was an answer, but no stream: seconds until the next connection, or an error."""
        error = error_of(status, headers, content)
        if not may_repeat(error, is_repeatable=True):
            raise error
        return self._again(None, error, retry_after(headers))

    def _again(self, fault: Exception | None, error: AgentRuntimeError | None, wait: float | None) -> float:
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            if error is not None:
                raise error
            if fault is not None:
                raise network_error(f"GET {self._path}", fault) from fault
            raise NetworkError(f"{self._failures} connections of GET {self._path} ended without a byte.")
        # The first time as the server asks, then longer. At random, so that readers do not come back all at once.
        grown = min(self._retry * 2.0 ** (self._failures - 1), max(_LONGEST_PAUSE, self._retry))
        pause = max(grown, min(wait or 0.0, _LONGEST_WAIT)) * random.uniform(1.0, 1.25)  # noqa: S311
        if self._deadline is not None:
            pause = min(pause, max(0.0, self._deadline - time.monotonic()))
        return pause

    def _check_deadline(self) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise DeadlineError(f"GET {self._path} had not ended within {self._timeout:g} s. The run goes on.")


def number_of(event: Any) -> int | None:
    """The number of an event, if it has one."""
    number = event["seq"] if isinstance(event, Record) and "seq" in event else None
    return number if isinstance(number, int) else None
