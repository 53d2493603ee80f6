# Written by clients/generate from the API description.
"""The people of the tenant, their enrolment codes and sessions, and what the caller may do."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import Null, body_of, segment
from .._resource import AsyncResource
from .._transport import AsyncTransport


class AsyncUsersEnrolments(AsyncResource):
    """Calls of ``users.enrolments``."""

    async def create(self, user_id: str, *, options: CallOptions | None = None) -> types.Enrolment:
        """Make another enrolment code for a person, which takes keys:write as well; the one before it ends.

        Access: admin on user in path. May also be refused with ``not-found``, ``conflict``.
        """
        return await self._call(
            types.Enrolment,
            "POST",
            f"/v1/identity/users/{segment(user_id)}/enrolments",
            options=options,
        )


class AsyncUsersSessions(AsyncResource):
    """Calls of ``users.sessions``."""

    def list(
        self,
        user_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Session]:
        """List a person's sessions that are open.

        Access: admin on user in path. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Session,
            f"/v1/identity/users/{segment(user_id)}/sessions",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )


class AsyncUsersIdentities(AsyncResource):
    """Calls of ``users.identities``."""

    def list(
        self,
        user_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Identity]:
        """List whom a person is at identity providers.

        Access: admin on user in path. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Identity,
            f"/v1/identity/users/{segment(user_id)}/identities",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def unlink(self, user_id: str, identity_id: str, *, options: CallOptions | None = None) -> None:
        """Take an identity from a person: the sessions that they opened by it end.

        Access: admin on user in path. May also be refused with ``not-found``.
        """
        await self._do(
            "DELETE",
            f"/v1/identity/users/{segment(user_id)}/identities/{segment(identity_id)}",
            options=options,
        )


class AsyncUsers(AsyncResource):
    """The people of the tenant, their enrolment codes and sessions, and what the caller may do."""

    def __init__(self, transport: AsyncTransport) -> None:
        super().__init__(transport)
        self.enrolments = AsyncUsersEnrolments(transport)
        self.sessions = AsyncUsersSessions(transport)
        self.identities = AsyncUsersIdentities(transport)

    async def add(
        self,
        *,
        email: str,
        display_name: str,
        tenant_role: types.TenantRole,
        options: CallOptions | None = None,
    ) -> types.AddedPerson:
        """Add a person, which takes keys:write as well; the answer shows once the code that mints their first key.

        Access: admin on tenant. May also be refused with ``already-exists``.

        - ``email``: It names the person whatever its case.
        """
        return await self._call(
            types.AddedPerson,
            "POST",
            "/v1/identity/users",
            body=body_of({"email": email, "displayName": display_name, "tenantRole": tenant_role}),
            options=options,
        )

    def list(
        self,
        *,
        tenant_role: types.TenantRole | None = None,
        status: types.UserStatus | None = None,
        email: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Person]:
        """List the tenant's people.

        Access: admin on tenant.

        - ``tenant_role``: With this role in the tenant.
        - ``status``: With this status.
        - ``email``: The whole email, in any case.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Person,
            "/v1/identity/users",
            query={
                "tenantRole": tenant_role,
                "status": status,
                "email": email,
                "cursor": cursor,
                "limit": limit,
                "order": order,
            },
            options=options,
        )

    async def get(self, user_id: str, *, options: CallOptions | None = None) -> types.Person:
        """Read a person.

        Access: admin on user in path. May also be refused with ``not-found``.
        """
        return await self._call(types.Person, "GET", f"/v1/identity/users/{segment(user_id)}", options=options)

    async def update(
        self,
        user_id: str,
        *,
        display_name: str | Null | None = None,
        tenant_role: types.TenantRole | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Person:
        """Change a person's name or tenant role.

        Access: admin on user in path. May also be refused with ``not-found``, ``last-admin``, ``conflict``.
        """
        return await self._call(
            types.Person,
            "PATCH",
            f"/v1/identity/users/{segment(user_id)}",
            body=body_of({"displayName": display_name, "tenantRole": tenant_role}),
            options=options,
        )

    async def deactivate(self, user_id: str, *, options: CallOptions | None = None) -> types.Person:
        """Deactivate a person: their keys and permissions end.

        Access: admin on user in path. May also be refused with ``not-found``, ``last-admin``.
        """
        return await self._call(
            types.Person,
            "POST",
            f"/v1/identity/users/{segment(user_id)}/deactivate",
            options=options,
        )

    async def sign_out(self, user_id: str, *, options: CallOptions | None = None) -> None:
        """End every session of a person, and the enrolment codes that they made; their keys go on.

        Access: admin on user in path. May also be refused with ``not-found``.
        """
        await self._do("POST", f"/v1/identity/users/{segment(user_id)}/sign-out", options=options)

    async def grants(
        self,
        user_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> types.Grants:
        """List the roles that a user has; the projects page.

        Access: the user in path, or admin on tenant. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        """
        return await self._call(
            types.Grants,
            "GET",
            f"/v1/identity/users/{segment(user_id)}/grants",
            query={"cursor": cursor, "limit": limit},
            options=options,
        )
