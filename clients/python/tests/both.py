"""Both clients behind one face, so that one test is of both."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Callable
from functools import wraps
from typing import Any

from agent_runtime import AgentRuntime, AsyncAgentRuntime, AsyncPages, AsyncStream, Page, Stream

TOKEN = "svc_bt_" + "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG" + "012345"


class Sync:
    """The synchronous client."""

    name = "sync"

    def __init__(self, url: str | None, token: Any = TOKEN, **options: Any) -> None:
        self.client: Any = AgentRuntime(url, token, **options)

    def do(self, call: Callable[[Any], Any], most: int | None = None) -> Any:
        """The answer of a call; of a list or a stream all that comes, or the first ones."""
        given = call(self.client)
        if isinstance(given, Stream):
            with given:
                return list(itertools.islice(given, most))
        return list(itertools.islice(given, most)) if isinstance(given, Page) else given

    def close(self) -> None:
        self.client.close()


class Async:
    """The asynchronous client, in an event loop of its own."""

    name = "async"

    def __init__(self, url: str | None, token: Any = TOKEN, **options: Any) -> None:
        self.client: Any = AsyncAgentRuntime(url, token, **options)
        self.loop = asyncio.new_event_loop()

    def do(self, call: Callable[[Any], Any], most: int | None = None) -> Any:
        return self.loop.run_until_complete(self._do(call, most))

    async def _do(self, call: Callable[[Any], Any], most: int | None) -> Any:
        given = call(self.client)
        if isinstance(given, AsyncStream):
            async with given:
                return await _some(given, most)
        if isinstance(given, AsyncPages):
            return await _some(given, most)
        return await given if inspect.isawaitable(given) else given

    def close(self) -> None:
        self.loop.run_until_complete(self.client.close())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


async def _some(given: Any, most: int | None) -> list[Any]:
    came: list[Any] = []
    if most == 0:
        return came
    async for one in given:
        came.append(one)
        if len(came) == most:
            break
    return came


def of_both(test: Callable[[Any, Any], None]) -> Callable[[Any], None]:
    """Runs a test with each client: its second argument makes one for a URL, and closes it at the end."""

    @wraps(test)
    def run(self: Any) -> None:
        for kind in (Sync, Async):
            made: list[Any] = []

            def make(*given: Any, kind: Any = kind, made: list[Any] = made, **options: Any) -> Any:
                made.append(kind(*given, **options))
                return made[-1]

            with self.subTest(kind.name):
                try:
                    test(self, make)
                finally:
                    for one in made:
                        one.close()

    return run
