# Written by clients/generate from the API description.
"""The people of the tenant, their enrolment codes, and what the caller may do."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._resource import AsyncResource


class AsyncMe(AsyncResource):
    """The people of the tenant, their enrolment codes, and what the caller may do."""

    async def permissions(self, *, options: CallOptions | None = None) -> types.Permissions:
        """Who the caller is, and what each role allows.

        Access: any bearer token.
        """
        return await self._call(types.Permissions, "GET", "/v1/identity/me/permissions", options=options)
