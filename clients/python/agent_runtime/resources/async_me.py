# Written by clients/generate from the API description.
"""How a person ends the session of a browser."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import segment
from .._resource import AsyncResource
from .._transport import AsyncTransport


class AsyncMeSessions(AsyncResource):
    """Calls of ``me.sessions``."""

    def list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Session]:
        """List the caller's own sessions that are open.

        Access: any bearer token or session.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Session,
            "/v1/identity/me/sessions",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def end(self, session_id: str, *, options: CallOptions | None = None) -> None:
        """End one of the caller's own sessions; any but the request's takes keys:write.

        Access: any bearer token or session. May also be refused with ``not-found``.
        """
        await self._do("DELETE", f"/v1/identity/me/sessions/{segment(session_id)}", options=options)


class AsyncMe(AsyncResource):
    """How a person ends the session of a browser."""

    def __init__(self, transport: AsyncTransport) -> None:
        super().__init__(transport)
        self.sessions = AsyncMeSessions(transport)

    async def sign_out(self, *, options: CallOptions | None = None) -> types.SignedOut:
        """End the session of the request, and say where one signs out at the identity provider, too.

        Access: a session.
        """
        return await self._call(types.SignedOut, "POST", "/v1/sign-out", options=options)

    async def get(self, *, options: CallOptions | None = None) -> types.Me:
        """Read who the caller is, and by which credential.

        Access: any bearer token or session.
        """
        return await self._call(types.Me, "GET", "/v1/identity/me", options=options)

    async def permissions(self, *, options: CallOptions | None = None) -> types.Permissions:
        """Who the caller is, and what each role allows.

        Access: any bearer token or session.
        """
        return await self._call(types.Permissions, "GET", "/v1/identity/me/permissions", options=options)
