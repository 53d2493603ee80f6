# Written by clients/generate from the API description.
"""The caller's own bearer tokens, and public run tokens for browsers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from .. import types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import Null, body_of, segment
from .._resource import AsyncResource


class AsyncTokens(AsyncResource):
    """The caller's own bearer tokens, and public run tokens for browsers."""

    async def create(
        self,
        *,
        name: str,
        role: types.KeyRole | Null | None = None,
        capabilities: Sequence[types.Capability] | Null | None = None,
        project_id: str | Null | None = None,
        expires_at: datetime | str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.MintedToken:
        """Mint a bearer token, which may do no more than the one that mints it; it is shown once.

        Access: any bearer token or session. May also be refused with ``role-exceeds-principal``,
        ``key-project-mismatch``, ``not-found``, ``conflict``.

        - ``role``: Not above the owner's role in the tenant.
        - ``project_id``: The one project that the token is limited to.
        - ``expires_at``: When the token ends by itself.
        """
        return await self._call(
            types.MintedToken,
            "POST",
            "/v1/tokens",
            body=body_of({
                "name": name,
                "role": role,
                "capabilities": capabilities,
                "projectId": project_id,
                "expiresAt": expires_at,
            }),
            options=options,
        )

    def list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Token]:
        """List the caller's own bearer tokens; with one that is limited to a project, that project's.

        Access: any bearer token or session.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Token,
            "/v1/tokens",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def revoke(self, token_id: str, *, options: CallOptions | None = None) -> None:
        """Revoke one of the caller's own bearer tokens; any but the request's takes keys:write.

        Access: any bearer token or session. May also be refused with ``not-found``.
        """
        await self._do("DELETE", f"/v1/tokens/{segment(token_id)}", options=options)

    async def create_public(
        self,
        *,
        run_ids: Sequence[str],
        expires_in_seconds: int | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.MintedPublicToken:
        """Mint a short-lived, read-only token for following named runs in a browser.

        Access: any bearer token or session. May also be refused with ``not-found``, ``not-configured``.

        - ``run_ids``: The runs that it opens.
        - ``expires_in_seconds``: How long it lives, in seconds.
        """
        return await self._call(
            types.MintedPublicToken,
            "POST",
            "/v1/tokens/public",
            body=body_of({"runIds": run_ids, "expiresInSeconds": expires_in_seconds}),
            options=options,
        )
