# Written by clients/generate from the API description.
"""Who may decide about approvals."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import Null, body_of, segment
from .._resource import AsyncResource


class AsyncReviewers(AsyncResource):
    """Who may decide about approvals."""

    async def register(
        self,
        *,
        role: str,
        user_id: str | Null | None = None,
        email: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Reviewer:
        """Give a person a reviewer role; one that is held stays.

        Access: admin on tenant. May also be refused with ``not-found``, ``conflict``.

        - ``role``: Such as ``standard``: 1 to 40 lowercase letters, digits and hyphens, no hyphen first.
        - ``email``: In any case.
        """
        return await self._call(
            types.Reviewer,
            "POST",
            "/v1/reviewers",
            body=body_of({"userId": user_id, "email": email, "role": role}),
            options=options,
        )

    def list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Reviewer]:
        """List the reviewers with their roles.

        Access: admin on tenant.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Reviewer,
            "/v1/reviewers",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def remove(self, user_id: str, role: str, *, options: CallOptions | None = None) -> None:
        """Take a reviewer role away.

        Access: admin on user in path. May also be refused with ``not-found``.
        """
        await self._do("DELETE", f"/v1/reviewers/{segment(user_id)}/{segment(role)}", options=options)
