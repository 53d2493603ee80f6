"""What the generated nouns are made with: each of their calls is one line on one of these."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from typing import Any, TypeVar, cast

from ._following import Following
from ._options import CallOptions
from ._page import AsyncPage, AsyncPages, Page
from ._protocol import Exchange
from ._record import Record
from ._stream import AsyncStream, Stream
from ._transport import AsyncTransport, Transport

T = TypeVar("T")
R = TypeVar("R", bound=Record)


def made(make: Callable[[Any], T], answer: Any) -> T:
    """The answer as a record, if it is an object."""
    return make(answer) if isinstance(answer, dict) else cast("T", answer)


class Resource:
    """A noun of `AgentRuntime`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _do(self, method: str, path: str, **parts: Any) -> None:
        self._transport.call(Exchange(self._transport.settings, method, path, **parts))

    def _call(self, make: Callable[[Any], T], method: str, path: str, **parts: Any) -> T:
        return made(make, self._transport.call(Exchange(self._transport.settings, method, path, **parts)))

    def _list(
        self, make: Callable[[Any], T], path: str, *, query: Mapping[str, Any], options: CallOptions | None
    ) -> Page[T]:
        answer = self._call(Record, "GET", path, query=query, options=options)

        def ask(cursor: str) -> Page[T]:
            return self._list(make, path, query={**query, "cursor": cursor}, options=options)

        return Page(answer, make, ask)

    def _stream(
        self,
        make: Callable[[dict[str, Any]], T],
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        after: int | None,
        max_silence: float,
        options: CallOptions | None,
        timeout: float | None = None,
    ) -> Stream[T]:
        following = Following(
            self._transport.settings,
            path,
            make,
            query=query,
            after=after,
            max_silence=max_silence,
            timeout=timeout,
            options=options,
        )
        return Stream(cast("Generator[T, None, None]", self._transport.follow(following)), after)


class AsyncResource:
    """A noun of `AsyncAgentRuntime`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def _do(self, method: str, path: str, **parts: Any) -> None:
        await self._transport.call(Exchange(self._transport.settings, method, path, **parts))

    async def _call(self, make: Callable[[Any], T], method: str, path: str, **parts: Any) -> T:
        return made(make, await self._transport.call(Exchange(self._transport.settings, method, path, **parts)))

    def _list(
        self, make: Callable[[Any], T], path: str, *, query: Mapping[str, Any], options: CallOptions | None
    ) -> AsyncPages[T]:
        def ask(cursor: str | None = None) -> Awaitable[AsyncPage[T]]:
            return self._page(make, path, query if cursor is None else {**query, "cursor": cursor}, options, ask)

        return AsyncPages(ask)

    async def _page(
        self,
        make: Callable[[Any], T],
        path: str,
        query: Mapping[str, Any],
        options: CallOptions | None,
        ask: Callable[[str], Awaitable[AsyncPage[T]]],
    ) -> AsyncPage[T]:
        return AsyncPage(await self._call(Record, "GET", path, query=query, options=options), make, ask)

    def _stream(
        self,
        make: Callable[[dict[str, Any]], T],
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        after: int | None,
        max_silence: float,
        options: CallOptions | None,
        timeout: float | None = None,
    ) -> AsyncStream[T]:
        following = Following(
            self._transport.settings,
            path,
            make,
            query=query,
            after=after,
            max_silence=max_silence,
            timeout=timeout,
            options=options,
        )
        return AsyncStream(cast("AsyncGenerator[T, None]", self._transport.follow(following)), after)
