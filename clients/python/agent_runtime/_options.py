"""How a client is set up, and what one call may have otherwise. Nothing here connects."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import urlsplit

from ._errors import InvalidError

URL_VARIABLE = "AGENT_RUNTIME_URL"
TOKEN_VARIABLE = "AGENT_RUNTIME_TOKEN"  # noqa: S105
TOKEN_FILE_VARIABLE = "AGENT_RUNTIME_TOKEN_FILE"  # noqa: S105
DEFAULT_URL = "http://127.0.0.1:4000"

_NO_ADDRESS = "base_url is the address of a server: http:// or https:// and a host."

#: Visible ASCII: whatever else comes along would be refused with the token in the message.
_TOKEN = re.compile(r"[\x21-\x7e]+")

Token = str | Callable[[], str]
AsyncToken = str | Callable[[], "str | Awaitable[str]"]


@dataclass(frozen=True)
class Answer:
    """One answer of the server, as ``on_answer`` is told of it: also of a try that is tried again."""

    method: str
    #: Without the query.
    path: str
    status: int
    #: In small letters.
    headers: Mapping[str, str]
    #: 1 for the first try of a call.
    attempt: int

    @property
    def request_id(self) -> str | None:
        """``req-<uuid>``: the server's log has the request under it."""
        return self.headers.get("x-request-id")


OnAnswer = Callable[[Answer], None]


class CallOptions(TypedDict, total=False):
    """What one call may have otherwise than its client."""

    #: Seconds that one try may take.
    timeout: float
    #: Tries after the first one, at most.
    retries: int
    #: Names the request, where the route takes it. Left out, the client makes one.
    idempotency_key: str
    #: Beside those of the client.
    headers: Mapping[str, str]
    #: Is told of each answer, in place of the client's own.
    on_answer: OnAnswer


def known(options: CallOptions | None, names: Iterable[str] = CallOptions.__annotations__) -> CallOptions:
    """The options of a call, if it takes them all."""
    others = ", ".join(sorted(set(options or ()) - set(names)))
    if others:
        raise InvalidError(f"This call has no options {others}. It has {', '.join(names)}.")
    return options or {}


class Credential:
    """A token, or what gives one. It shows itself nowhere."""

    __slots__ = ("_given",)

    def __init__(self, given: Any) -> None:
        self._given = _checked(given) if isinstance(given, str) and given else given

    def get(self) -> Any:
        """The token of now, an awaitable of it, or None."""
        return self._given() if callable(self._given) else self._given

    def __repr__(self) -> str:
        return "Credential(***)"

    def __reduce__(self) -> Any:
        raise TypeError("A credential is not written anywhere.")


def _checked(token: str) -> str:
    token = token.strip()
    if _TOKEN.fullmatch(token) is None:
        raise InvalidError("The token has a character that no token has: a space, a line break, or one beyond ASCII.")
    return token


def authorization(token: object) -> dict[str, str]:
    """The header of a token."""
    if token is None or token == "":
        return {}
    if not isinstance(token, str):
        raise InvalidError(f"token gave a {type(token).__name__}, not a text.")
    return {"authorization": f"Bearer {_checked(token)}"}


@dataclass(frozen=True)
class Settings:
    """A client's own settings."""

    base_url: str
    token: Credential = field(repr=False)
    timeout: float = 60.0
    retries: int = 2
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    on_answer: OnAnswer | None = None


def settings(
    base_url: str | None,
    token: object,
    *,
    timeout: float,
    retries: int,
    headers: Mapping[str, str] | None,
    on_answer: OnAnswer | None,
) -> Settings:
    """What was given, else what the environment says, as the command line reads it."""
    if token is None:
        token = _token_of_environment()
    check_bounds(timeout, retries)
    if base_url is None:
        base_url = os.environ.get(URL_VARIABLE) or DEFAULT_URL
    return Settings(
        base_url=_base_url(base_url),
        token=Credential(token),
        timeout=timeout,
        retries=retries,
        headers=dict(headers or {}),
        on_answer=on_answer,
    )


def check_bounds(timeout: float, retries: int) -> None:
    """Refuses what is no number of seconds or of tries."""
    if not timeout > 0:
        raise InvalidError(f"timeout is {timeout}: give seconds above 0.")
    if not retries >= 0:
        raise InvalidError(f"retries is {retries}: give 0 or more.")


def _base_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        # What is no number raises here.
        _ = parts.port
    except ValueError:
        # What Python says of a bad address has the address in it.
        raise InvalidError(_NO_ADDRESS) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidError(_NO_ADDRESS)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidError("base_url has no user, no query and no fragment. The token is given as token.")
    return text.rstrip("/")


def _token_of_environment() -> Token | None:
    path = os.environ.get(TOKEN_FILE_VARIABLE)
    if not path:
        return os.environ.get(TOKEN_VARIABLE) or None

    def read() -> str:
        # For each try: who changes the token writes the file.
        try:
            return Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise InvalidError(f"{TOKEN_FILE_VARIABLE} names {path}, which cannot be read.") from fault

    return read
