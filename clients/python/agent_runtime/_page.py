"""Pages of lists. A page is one request; iterating asks for the next ones as it comes to their end, without a cap.

Guarantee: between two pages nothing is open, so a list may be left anywhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

from ._errors import ProtocolError
from ._json import json_list
from ._record import Record

T = TypeVar("T")


class _Rows(Generic[T]):
    """What a page has, however it was asked for."""

    def __init__(self, answer: Record, make: Callable[[Any], T]) -> None:
        data = json_list(answer.raw.get("data"))
        if data is None:
            raise ProtocolError("The answer is no page of a list: it has no data.")
        cursor = answer.raw.get("nextCursor")
        #: The rows.
        self.data: tuple[T, ...] = tuple(map(make, data))
        #: More rows follow.
        self.has_more: bool = answer.raw.get("hasMore") is True
        #: Where the next page begins, for a later request of the same list.
        self.next_cursor: str | None = cursor if isinstance(cursor, str) else None
        #: The whole answer, with what it has beside the rows, such as the counts of the inbox.
        self.answer: Record = answer

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.data)} rows, has_more={self.has_more})"


class Page(_Rows[T]):
    """A page of a list. Iterating over it goes on over all pages that follow."""

    def __init__(self, answer: Record, make: Callable[[Any], T], ask: Callable[[str], Page[T]]) -> None:
        super().__init__(answer, make)
        self._ask = ask

    def next(self) -> Page[T] | None:
        """The next page, or None after the last one."""
        return self._ask(self.next_cursor) if self.has_more and self.next_cursor is not None else None

    def __iter__(self) -> Iterator[T]:
        page: Page[T] | None = self
        while page is not None:
            yield from page.data
            page = page.next()


class AsyncPage(_Rows[T]):
    """A page of a list. Iterating over it goes on over all pages that follow."""

    def __init__(self, answer: Record, make: Callable[[Any], T], ask: Callable[[str], Awaitable[AsyncPage[T]]]) -> None:
        super().__init__(answer, make)
        self._ask = ask

    async def next(self) -> AsyncPage[T] | None:
        """The next page, or None after the last one."""
        return await self._ask(self.next_cursor) if self.has_more and self.next_cursor is not None else None

    async def __aiter__(self) -> AsyncIterator[T]:
        page: AsyncPage[T] | None = self
        while page is not None:
            for row in page.data:
                yield row
            page = await page.next()


class AsyncPages(Generic[T]):
    """A list that was not asked for yet: ``await`` gives its first page, ``async for`` all its rows."""

    def __init__(self, ask: Callable[[], Awaitable[AsyncPage[T]]]) -> None:
        self._ask = ask

    def __await__(self) -> Generator[Any, Any, AsyncPage[T]]:
        return self._ask().__await__()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for row in await self._ask():
            yield row
