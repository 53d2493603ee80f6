"""What the client raises. Every error is an :class:`AgentRuntimeError`; its class and its ``code`` say what to do, its
``server_code`` what exactly the server answered.

Guarantee: no token is in a message, and none in what a traceback shows of an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from ._json import json_object

_CREDENTIAL = re.compile(r"(svc_[a-z]{2}_|whsec_)[A-Za-z0-9+/=_.\-]+")

#: The longest text of an answer that is not JSON, in a message.
_MOST_TEXT = 200


def without_credentials(text: str) -> str:
    """The text, with each credential of the runtime reduced to what kind of one it is."""
    return _CREDENTIAL.sub(r"\1***", text)


class AgentRuntimeError(Exception):
    """A call that did not do what was asked."""

    #: What kind of error it is: one word, the same in every client.
    code: ClassVar[str] = "server"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        server_code: str | None = None,
        reason: str | None = None,
        details: Mapping[str, Any] | None = None,
        request_id: str | None = None,
    ) -> None:
        message = without_credentials(message)
        super().__init__(message)
        #: A sentence that says what is wrong and what to do.
        self.message = message
        #: The HTTP status, if there was an answer.
        self.status = status
        #: The server's code, such as ``permission-denied``: programs can rely on it.
        self.server_code = server_code
        #: Of an :class:`AuthError`: ``unauthenticated`` or ``forbidden``.
        self.reason = reason
        #: What the server says beside, by code.
        self.details: Mapping[str, Any] = {} if details is None else details
        #: ``req-<uuid>``: the server's log has the cause under it.
        self.request_id = request_id

    def __str__(self) -> str:
        return self.message if self.request_id is None else f"{self.message} ({self.request_id})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), self.message, dict(self.__dict__))


def _remake(kind: type[AgentRuntimeError], message: str, state: dict[str, Any]) -> AgentRuntimeError:
    error = kind(message)
    error.__dict__.update(state)
    return error


class AuthError(AgentRuntimeError):
    """The credential is not known (401), or may not do this (403)."""

    code = "auth"


class InvalidError(AgentRuntimeError):
    """The request is not what the route takes: correct it."""

    code = "invalid"


class NotFoundError(AgentRuntimeError):
    """There is no such object, or the server has no such route."""

    code = "not-found"


class ConflictError(AgentRuntimeError):
    """The object is not in a state that allows this: read it again, then decide."""

    code = "conflict"


class RateLimitError(AgentRuntimeError):
    """Too many requests, or too many that were denied: wait."""

    code = "rate-limit"


class UnavailableError(AgentRuntimeError):
    """The server, or something that it needs, is away for now."""

    code = "unavailable"


class DeadlineError(AgentRuntimeError):
    """No answer within the time. The request may still take effect."""

    code = "timeout"


class NetworkError(AgentRuntimeError):
    """The connection failed or was cut."""

    code = "network"


class ServerError(AgentRuntimeError):
    """A fault of the server, or something that is not configured there."""

    code = "server"


class ProtocolError(AgentRuntimeError):
    """What came is no answer of this API."""

    code = "protocol"


class WebhookSignatureError(AgentRuntimeError):
    """What came is no webhook of the holder of the secret, or not of now."""

    code = "signature"


_BY_STATUS: dict[int, type[AgentRuntimeError]] = {
    401: AuthError,
    403: AuthError,
    404: NotFoundError,
    408: DeadlineError,
    409: ConflictError,
    429: RateLimitError,
    502: UnavailableError,
    503: UnavailableError,
    504: DeadlineError,
}
_REASONS = {401: "unauthenticated", 403: "forbidden"}


def class_of(status: int, server_code: str | None) -> type[AgentRuntimeError]:
    """Which error an answer of this status and code is."""
    if server_code == "authorization-unavailable":
        return UnavailableError
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return ServerError
    return InvalidError if status >= 400 else ProtocolError


def of_answer(status: int, body: object, text: str, request_id: str | None) -> AgentRuntimeError:
    """The error of an answer: its body as JSON, if it is that, and as text."""
    fields = json_object((json_object(body) or {}).get("error")) or {}
    server_code = _text(fields.get("code"))
    message = _text(fields.get("message"))
    if message is None:
        if 300 <= status < 400:
            message = (
                f"The server answered {status}: redirects are not followed, since they would carry the token away. "
                "Give the address that it leads to as base_url."
            )
        else:
            said = " ".join(text.split())[:_MOST_TEXT]
            message = f"The server answered {status}" + (f": {said}" if said else ".")
    if server_code == "route-not-found":
        message += " This server may be older than the client."
    return class_of(status, server_code)(
        message,
        status=status,
        server_code=server_code,
        reason=_REASONS.get(status),
        details=json_object(fields.get("details")),
        request_id=_text(fields.get("requestId")) or request_id,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
