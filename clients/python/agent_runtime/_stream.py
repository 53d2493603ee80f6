"""Streams, as callers hold them: iterators that close their connection when they end, are closed, or are let go.

What keeps them exact through cuts is in `_following`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from types import TracebackType
from typing import Generic, Self, TypeVar

from ._following import number_of

T = TypeVar("T")


class Stream(Generic[T], Iterator[T]):
    """The events of a stream. It connects with the first event that is asked for."""

    def __init__(self, events: Generator[T, None, None], after: int | None) -> None:
        self._events = events
        #: The number of the newest event that was given: ``follow`` goes on after it by ``after``.
        self.last_event_id: int | None = after

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        event = next(self._events)
        number = number_of(event)
        if number is not None:
            self.last_event_id = number
        return event

    def close(self) -> None:
        """Closes the connection. There are no more events."""
        self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncStream(Generic[T], AsyncIterator[T]):
    """The events of a stream. It connects with the first event that is asked for.

    Leaving an ``async for`` early leaves the stream open until the event loop comes to it; ``async with`` closes it at once.
    """

    def __init__(self, events: AsyncGenerator[T, None], after: int | None) -> None:
        self._events = events
        #: The number of the newest event that was given: ``follow`` goes on after it by ``after``.
        self.last_event_id: int | None = after

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        event = await self._events.__anext__()
        number = number_of(event)
        if number is not None:
            self.last_event_id = number
        return event

    async def aclose(self) -> None:
        """Closes the connection. There are no more events."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()
