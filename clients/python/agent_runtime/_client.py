"""The clients: `AgentRuntime`, `AsyncAgentRuntime`, and what a public run token opens."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import httpx2

from ._errors import InvalidError
from ._following import MAX_SILENCE
from ._options import AsyncToken, CallOptions, OnAnswer, Settings, Token, settings
from ._protocol import Exchange
from ._record import unknown
from ._stream import AsyncStream, Stream
from ._transport import AsyncTransport, Transport
from .resources import AsyncNouns, Nouns

if TYPE_CHECKING:
    from .types import Progress, RunStreamEvent


class _Closing:
    _transport: Transport

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def base_url(self) -> str:
        """The server's address."""
        return self._transport.settings.base_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"


class _AsyncClosing:
    _transport: AsyncTransport

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def base_url(self) -> str:
        """The server's address."""
        return self._transport.settings.base_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"


class AgentRuntime(Nouns, _Closing):
    """A client of one server.

    ``base_url`` is the server's address, ``token`` a bearer token or a function that gives one, which is asked for each
    try. Left out, they come from ``AGENT_RUNTIME_URL`` and ``AGENT_RUNTIME_TOKEN_FILE`` or ``AGENT_RUNTIME_TOKEN``.
    ``timeout`` is in seconds, for one try; ``retries`` are the tries after the first. ``headers`` go with each request.
    ``on_answer`` is told of each answer. ``trust_env`` takes proxies and certificates from the environment.
    ``http_client`` is an httpx2 client to use in place of an own one, which is then yours to close.

    A client may be used by several threads.
    """

    def __init__(
        self,
        base_url: str | None = None,
        token: Token | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 2,
        headers: Mapping[str, str] | None = None,
        on_answer: OnAnswer | None = None,
        trust_env: bool = True,
        http_client: httpx2.Client | None = None,
    ) -> None:
        given = settings(base_url, token, timeout=timeout, retries=retries, headers=headers, on_answer=on_answer)
        self._transport = Transport(given, http_client, trust_env=trust_env)

    @staticmethod
    def for_run(base_url: str, public_token: Token, *, http_client: httpx2.Client | None = None) -> RunReader:
        """What a public run token opens: the progress of its runs."""
        return RunReader(_public(base_url, public_token), http_client)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        options: CallOptions | None = None,
    ) -> Any:
        """Calls a route that this client does not know, and answers its JSON; objects are records.

        ``path`` begins with ``/v1/``. With an ``idempotency_key`` in the options it may be sent again.
        """
        return unknown(self._transport.call(_raw(self._transport.settings, method, path, query, body, options)))


class AsyncAgentRuntime(AsyncNouns, _AsyncClosing):
    """A client of one server, for asyncio. Its arguments are those of :class:`AgentRuntime`; ``token`` may be an
    asynchronous function as well."""

    def __init__(
        self,
        base_url: str | None = None,
        token: AsyncToken | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 2,
        headers: Mapping[str, str] | None = None,
        on_answer: OnAnswer | None = None,
        trust_env: bool = True,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        given = settings(base_url, token, timeout=timeout, retries=retries, headers=headers, on_answer=on_answer)
        self._transport = AsyncTransport(given, http_client, trust_env=trust_env)

    @staticmethod
    def for_run(
        base_url: str, public_token: AsyncToken, *, http_client: httpx2.AsyncClient | None = None
    ) -> AsyncRunReader:
        """What a public run token opens: the progress of its runs."""
        return AsyncRunReader(_public(base_url, public_token), http_client)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        options: CallOptions | None = None,
    ) -> Any:
        """Calls a route that this client does not know, and answers its JSON; objects are records.

        ``path`` begins with ``/v1/``. With an ``idempotency_key`` in the options it may be sent again.
        """
        return unknown(await self._transport.call(_raw(self._transport.settings, method, path, query, body, options)))


class RunReader(_Closing):
    """What a public run token opens. Made by :meth:`AgentRuntime.for_run`."""

    def __init__(self, given: Settings, http_client: httpx2.Client | None) -> None:
        from .resources.runs import Runs

        self._transport = Transport(given, http_client, trust_env=True)
        self._runs = Runs(self._transport)

    def progress(self, run_id: str, *, after: int | None = None, limit: int | None = None) -> Progress:
        """The run, and a page of its events."""
        return self._runs.progress(run_id, after=after, limit=limit)

    def follow(
        self, run_id: str, *, after: int | None = None, max_silence: float = MAX_SILENCE
    ) -> Stream[RunStreamEvent]:
        """The run's events, as they come."""
        return self._runs.follow(run_id, after=after, max_silence=max_silence)


class AsyncRunReader(_AsyncClosing):
    """What a public run token opens. Made by :meth:`AsyncAgentRuntime.for_run`."""

    def __init__(self, given: Settings, http_client: httpx2.AsyncClient | None) -> None:
        from .resources.async_runs import AsyncRuns

        self._transport = AsyncTransport(given, http_client, trust_env=True)
        self._runs = AsyncRuns(self._transport)

    async def progress(self, run_id: str, *, after: int | None = None, limit: int | None = None) -> Progress:
        """The run, and a page of its events."""
        return await self._runs.progress(run_id, after=after, limit=limit)

    def follow(
        self, run_id: str, *, after: int | None = None, max_silence: float = MAX_SILENCE
    ) -> AsyncStream[RunStreamEvent]:
        """The run's events, as they come."""
        return self._runs.follow(run_id, after=after, max_silence=max_silence)


def _public(base_url: str, token: object) -> Settings:
    if not token:
        # A token of the environment would take its place.
        raise InvalidError("for_run takes the public token of a run.")
    return settings(base_url, token, timeout=60.0, retries=2, headers=None, on_answer=None)


def _raw(
    given: Settings,
    method: str,
    path: str,
    query: Mapping[str, Any] | None,
    body: object,
    options: CallOptions | None,
) -> Exchange:
    if not path.startswith("/") or "?" in path or "#" in path:
        raise InvalidError("path begins with / and has no query: that is given as query.")
    is_idempotent = "idempotency_key" in (options or {})
    return Exchange(given, method.upper(), path, query=query, body=body, is_idempotent=is_idempotent, options=options)
