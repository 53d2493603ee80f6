"""Connections, by httpx2: each of both transports makes calls, opens streams and closes itself. What is sent, and what is
made of what comes, is in `_protocol` and `_following`.

Guarantees: redirects are not followed, since they would carry the token away; an answer is read to its end, or its
connection is closed; a stream that a caller leaves is closed.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncGenerator, Generator
from typing import Any

import anyio
import httpx2

from ._following import Following
from ._options import Settings
from ._protocol import Exchange, Outgoing

#: Seconds.
_CONNECT_TIMEOUT = 10.0

#: How much is read of an answer that is no stream.
_MOST_REFUSAL_BYTES = 64 * 1024


def _is_tls(settings: Settings) -> bool:
    """Whether certificates are needed: to read the system's takes a tenth of a second."""
    return settings.base_url.startswith("https:")


def _timeout(outgoing: Outgoing) -> httpx2.Timeout:
    return httpx2.Timeout(outgoing.timeout, connect=min(outgoing.timeout, _CONNECT_TIMEOUT))


def _request(http: httpx2.Client | httpx2.AsyncClient, outgoing: Outgoing) -> httpx2.Request:
    return http.build_request(
        outgoing.method,
        outgoing.url,
        headers=dict(outgoing.headers),
        content=outgoing.content,
        timeout=_timeout(outgoing),
    )


def _failed(exchange: Exchange, fault: httpx2.HTTPError | TimeoutError) -> float:
    return exchange.failed(fault, is_late=isinstance(fault, (httpx2.TimeoutException, TimeoutError)))


class Transport:
    """For `AgentRuntime`."""

    def __init__(self, settings: Settings, http: httpx2.Client | None, *, trust_env: bool) -> None:
        self.settings = settings
        self._is_own = http is None
        self._http = httpx2.Client(trust_env=trust_env, verify=_is_tls(settings)) if http is None else http

    def call(self, exchange: Exchange) -> Any:
        """Makes a call, and answers its JSON."""
        while True:
            request = _request(self._http, exchange.begin(self.settings.token.get()))
            try:
                response = self._http.send(request, stream=True, follow_redirects=False)
                try:
                    content = self._read(response, exchange)
                finally:
                    response.close()
            except (httpx2.HTTPError, TimeoutError) as fault:
                wait = _failed(exchange, fault)
            else:
                again = exchange.answered(response.status_code, dict(response.headers), content)
                if again is None:
                    return exchange.answer
                wait = again
            time.sleep(wait)

    def _read(self, response: httpx2.Response, exchange: Exchange) -> bytes:
        content = bytearray()
        for part in response.iter_bytes():
            content += part
            exchange.check(len(content))
        return bytes(content)

    def follow(self, following: Following) -> Generator[Any, None, None]:
        """The events of a stream, through as many connections as it takes."""
        while not following.is_over:
            request = _request(self._http, following.begin(self.settings.token.get()))
            try:
                response = self._http.send(request, stream=True, follow_redirects=False)
                try:
                    if following.opened(response.status_code, dict(response.headers)):
                        for part in response.iter_bytes():
                            yield from following.feed(part)
                            if following.is_over:
                                return
                            if following.is_to_reopen:
                                break
                        wait = following.cut(None)
                    else:
                        wait = self._refused(response, following)
                finally:
                    response.close()
            except httpx2.HTTPError as fault:
                wait = following.cut(fault)
            time.sleep(wait)

    def _refused(self, response: httpx2.Response, following: Following) -> float:
        content = b""
        for part in response.iter_bytes():
            content += part
            if len(content) > _MOST_REFUSAL_BYTES:
                break
        return following.refused(response.status_code, dict(response.headers), content)

    def close(self) -> None:
        """Closes the connections, if they are this client's own."""
        if self._is_own:
            self._http.close()


class AsyncTransport:
    """For `AsyncAgentRuntime`."""

    def __init__(self, settings: Settings, http: httpx2.AsyncClient | None, *, trust_env: bool) -> None:
        self.settings = settings
        self._is_own = http is None
        self._http = httpx2.AsyncClient(trust_env=trust_env, verify=_is_tls(settings)) if http is None else http

    async def _token(self) -> Any:
        token = self.settings.token.get()
        return await token if inspect.isawaitable(token) else token

    async def call(self, exchange: Exchange) -> Any:
        """Makes a call, and answers its JSON."""
        while True:
            request = _request(self._http, exchange.begin(await self._token()))
            try:
                response = await self._http.send(request, stream=True, follow_redirects=False)
                try:
                    content = await self._read(response, exchange)
                finally:
                    await response.aclose()
            except (httpx2.HTTPError, TimeoutError) as fault:
                wait = _failed(exchange, fault)
            else:
                again = exchange.answered(response.status_code, dict(response.headers), content)
                if again is None:
                    return exchange.answer
                wait = again
            await anyio.sleep(wait)

    async def _read(self, response: httpx2.Response, exchange: Exchange) -> bytes:
        content = bytearray()
        async for part in response.aiter_bytes():
            content += part
            exchange.check(len(content))
        return bytes(content)

    async def follow(self, following: Following) -> AsyncGenerator[Any, None]:
        """The events of a stream, through as many connections as it takes."""
        while not following.is_over:
            request = _request(self._http, following.begin(await self._token()))
            try:
                response = await self._http.send(request, stream=True, follow_redirects=False)
                try:
                    if following.opened(response.status_code, dict(response.headers)):
                        async for part in response.aiter_bytes():
                            for event in following.feed(part):
                                yield event
                            if following.is_over:
                                return
                            if following.is_to_reopen:
                                break
                        wait = following.cut(None)
                    else:
                        wait = await self._refused(response, following)
                finally:
                    await response.aclose()
            except httpx2.HTTPError as fault:
                wait = following.cut(fault)
            await anyio.sleep(wait)

    async def _refused(self, response: httpx2.Response, following: Following) -> float:
        content = b""
        async for part in response.aiter_bytes():
            content += part
            if len(content) > _MOST_REFUSAL_BYTES:
                break
        return following.refused(response.status_code, dict(response.headers), content)

    async def close(self) -> None:
        """Closes the connections, if they are this client's own."""
        if self._is_own:
            await self._http.aclose()
