"""What the client sends and makes of what comes, without I/O: the synchronous and the asynchronous client share it.

Guarantees: a request is sent again only where that is safe. Reads, PUT and DELETE always are. A POST or PATCH is where its
route takes an idempotency key, which all its tries carry; otherwise only where the server says that nothing was done. So
one call makes one run, whatever is lost on the way. Every try has a deadline, every answer a bound.
"""

from __future__ import annotations

import email.utils
import json
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import quote, urlencode

from ._errors import AgentRuntimeError, DeadlineError, InvalidError, NetworkError, ProtocolError, of_answer
from ._options import Answer, CallOptions, Settings, authorization, check_bounds, known
from ._record import Record
from ._version import __version__

USER_AGENT = f"agent-runtime-python/{__version__}"

#: The largest answer in bytes. The largest that the server makes are pages of a few MiB.
MOST_ANSWER_BYTES = 128 * 1024 * 1024

#: Seconds: the first pause, and the longest, also where the server asks for a longer one.
_FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0

#: What can be sent again as it is, where a repetition is safe.
_PASSING = frozenset({408, 429, 502, 503, 504})
#: The second: a first try whose answer was lost is still under way.
_PASSING_CODES = frozenset({"authorization-unavailable", "idempotency-in-flight"})
#: With these nothing was done, whatever the request.
_NOTHING_DONE = frozenset({"too-many-requests", "overloaded", "audit-unavailable", "shutting-down"})
_SAFE_METHODS = frozenset({"GET", "PUT", "DELETE"})


class Null:
    """The type of ``NULL``."""

    def __repr__(self) -> str:
        return "NULL"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "NULL"


#: Sends null. ``None`` leaves a field out.
NULL = Null()


def segment(value: object) -> str:
    """An id or a name, as a part of a path."""
    text = str(value)
    if text in ("", ".", ".."):
        raise InvalidError(f"{text!r} is no id.")
    return quote(text, safe="")


def query_text(query: Mapping[str, Any] | None) -> str:
    """The query with its question mark; parameters that are None are left out."""
    pairs: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        values = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else [value]
        pairs += [(name, _parameter(one)) for one in values if one is not None]
    return f"?{urlencode(pairs, quote_via=quote)}" if pairs else ""


def _parameter(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _time(value) if isinstance(value, datetime) else str(value)


def _time(value: datetime) -> str:
    """RFC 3339, UTC. A time without a zone is local, as everywhere in Python."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def body_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a body that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def encoded(body: object) -> bytes:
    """A body as JSON."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode()


def _plain(value: object) -> Any:
    if isinstance(value, Record):
        return value.raw
    if isinstance(value, Null):
        return None
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(f"A {type(value).__name__} cannot be sent as JSON.")


@dataclass(frozen=True)
class Outgoing:
    """One try of a request."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None
    #: Seconds.
    timeout: float


class Exchange:
    """One call: its tries, until one is answered or there are no more."""

    def __init__(
        self,
        settings: Settings,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        is_idempotent: bool = False,
        options: CallOptions | None = None,
    ) -> None:
        options = known(options)
        self._settings = settings
        self._method = method
        self._path = path
        self._query = query_text(query)
        self._content = None if body is None else encoded(body)
        self._headers = {"accept": "application/json", "user-agent": USER_AGENT, **_small(settings.headers)}
        if self._content is not None:
            self._headers["content-type"] = "application/json"
        self._headers.update(_small(options.get("headers") or {}))
        key = options.get("idempotency_key")
        if key is not None and not is_idempotent:
            raise InvalidError(f"{method} {path} takes no idempotency key.")
        if is_idempotent:
            self._headers.setdefault("idempotency-key", key or str(uuid.uuid4()))
        self._is_repeatable = is_idempotent or method in _SAFE_METHODS
        self._timeout = options.get("timeout", settings.timeout)
        self._retries = options.get("retries", settings.retries)
        check_bounds(self._timeout, self._retries)
        self._on_answer = options.get("on_answer") or settings.on_answer
        self._deadline = 0.0
        self._attempt = 0
        self._is_lost = False
        #: What was answered: JSON, or None where there is no body.
        self.answer: Any = None

    def begin(self, token: object) -> Outgoing:
        """Begins a try."""
        self._attempt += 1
        self._deadline = time.monotonic() + self._timeout
        url = f"{self._settings.base_url}{self._path}{self._query}"
        headers = {**self._headers, **authorization(token)}
        return Outgoing(self._method, url, headers, self._content, self._timeout)

    def check(self, received_bytes: int) -> None:
        """To be asked with every part of an answer that comes. A late one is a failed try: `TimeoutError`."""
        if time.monotonic() > self._deadline:
            raise TimeoutError
        if received_bytes > MOST_ANSWER_BYTES:
            raise ProtocolError(f"The answer of {self._what()} is longer than {MOST_ANSWER_BYTES} bytes.")

    def failed(self, fault: Exception, *, is_late: bool) -> float:
        """There was no answer: seconds until the next try, or an error."""
        self._is_lost = True
        if self._is_repeatable and self._attempt <= self._retries:
            return pause(self._attempt)
        raise (self._late() if is_late else network_error(self._what(), fault)) from fault

    def answered(self, status: int, headers: Mapping[str, str], content: bytes) -> float | None:
        """An answer came: None if that is it, seconds until the next try, or an error."""
        if self._on_answer is not None:
            self._on_answer(Answer(self._method, self._path, status, headers, self._attempt))
        if 200 <= status < 300:
            self.answer = self._decoded(status, headers, content)
            return None
        error = error_of(status, headers, content)
        if self._is_lost and self._method == "DELETE" and error.server_code == "not-found":
            # A try whose answer was lost has removed it.
            return None
        self._is_lost = self._is_lost or status in (502, 504)
        wait = retry_after(headers)
        again = self._attempt <= self._retries and (wait is None or wait <= LONGEST_PAUSE)
        if again and may_repeat(error, is_repeatable=self._is_repeatable):
            return pause(self._attempt) if wait is None else wait
        raise error

    def _decoded(self, status: int, headers: Mapping[str, str], content: bytes) -> Any:
        if status == 204 or not content:
            return None
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as fault:
            kind = headers.get("content-type", "nothing")
            message = f"The answer of {self._what()} is no JSON, but {kind}. Is base_url the address of the service?"
            raise ProtocolError(message, status=status, request_id=headers.get("x-request-id")) from fault

    def _late(self) -> DeadlineError:
        return DeadlineError(f"{self._what()} was not answered within {self._timeout:g} s. It may still take effect.")

    def _what(self) -> str:
        return f"{self._method} {self._path}"


def network_error(what: str, fault: Exception) -> NetworkError:
    """What became of a connection."""
    text = " ".join(str(fault).split()) or type(fault).__name__
    return NetworkError(f"{what} got no answer: {text}.")


def error_of(status: int, headers: Mapping[str, str], content: bytes) -> AgentRuntimeError:
    """The error of an answer that is none of success."""
    text = content[: 64 * 1024].decode("utf-8", "replace")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    return of_answer(status, body, text, headers.get("x-request-id"))


def may_repeat(error: AgentRuntimeError, *, is_repeatable: bool) -> bool:
    """Whether the request that was answered so can be sent again."""
    if is_repeatable:
        return error.status in _PASSING or error.server_code in _PASSING_CODES
    return error.server_code in _NOTHING_DONE


def pause(attempt: int) -> float:
    """Seconds before the try after this one: growing, and at random, so that clients do not come back together."""
    longest = min(LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (attempt - 1))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks for (RFC 9110 section 10.2.3)."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if text.isdecimal():
        return float(text)
    try:
        at = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, at.timestamp() - time.time())


def _small(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
