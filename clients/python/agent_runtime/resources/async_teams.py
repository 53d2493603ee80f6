# Written by clients/generate from the API description.
"""People and service accounts that get roles on projects together."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import Null, body_of, segment
from .._resource import AsyncResource
from .._transport import AsyncTransport


class AsyncTeamsProjectGrants(AsyncResource):
    """Calls of ``teams.project_grants``."""

    def list(
        self,
        team_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.TeamGrant]:
        """List the projects that a team has a role on.

        Access: admin on team in path. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.TeamGrant,
            f"/v1/teams/{segment(team_id)}/project-grants",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )


class AsyncTeamsMemberships(AsyncResource):
    """Calls of ``teams.memberships``."""

    async def add(
        self,
        team_id: str,
        *,
        role: types.TeamRole,
        user_id: str | Null | None = None,
        email: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.TeamMembership:
        """Add somebody to a team; the same role once more answers the membership as it is.

        Access: admin on team in path. May also be refused with ``not-found``, ``membership-exists``, ``conflict``.

        - ``email``: Of one of the tenant's people, in any case.
        """
        return await self._call(
            types.TeamMembership,
            "POST",
            f"/v1/teams/{segment(team_id)}/memberships",
            body=body_of({"userId": user_id, "email": email, "role": role}),
            options=options,
        )

    def list(
        self,
        team_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.TeamMembership]:
        """List who is in a team.

        Access: admin on team in path. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.TeamMembership,
            f"/v1/teams/{segment(team_id)}/memberships",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def update_role(
        self,
        team_id: str,
        user_id: str,
        *,
        role: types.TeamRole,
        options: CallOptions | None = None,
    ) -> types.TeamMembership:
        """Change the role of somebody in a team.

        Access: admin on team in path. May also be refused with ``not-found``.
        """
        return await self._call(
            types.TeamMembership,
            "PATCH",
            f"/v1/teams/{segment(team_id)}/memberships/{segment(user_id)}",
            body=body_of({"role": role}),
            options=options,
        )

    async def remove(self, team_id: str, user_id: str, *, options: CallOptions | None = None) -> None:
        """Remove somebody from a team.

        Access: admin on team in path. May also be refused with ``not-found``.
        """
        await self._do("DELETE", f"/v1/teams/{segment(team_id)}/memberships/{segment(user_id)}", options=options)


class AsyncTeams(AsyncResource):
    """People and service accounts that get roles on projects together."""

    def __init__(self, transport: AsyncTransport) -> None:
        super().__init__(transport)
        self.project_grants = AsyncTeamsProjectGrants(transport)
        self.memberships = AsyncTeamsMemberships(transport)

    async def create(
        self,
        *,
        name: str,
        slug: str,
        description: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Team:
        """Make a team; its creator becomes its admin.

        Access: admin on tenant. May also be refused with ``already-exists``.

        - ``slug``: Unique in the tenant. It stays when the team is renamed.
        """
        return await self._call(
            types.Team,
            "POST",
            "/v1/teams",
            body=body_of({"name": name, "slug": slug, "description": description}),
            options=options,
        )

    def list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Team]:
        """List the teams that the caller may read.

        Access: readable teams. May also be refused with ``key-project-mismatch``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Team,
            "/v1/teams",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def get(self, team_id: str, *, options: CallOptions | None = None) -> types.Team:
        """Read a team.

        Access: read on team in path. May also be refused with ``not-found``.
        """
        return await self._call(types.Team, "GET", f"/v1/teams/{segment(team_id)}", options=options)

    async def update(
        self,
        team_id: str,
        *,
        name: str | Null | None = None,
        description: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Team:
        """Change a team's name or description; what is left out stays, and the slug does.

        Access: admin on team in path. May also be refused with ``not-found``.
        """
        return await self._call(
            types.Team,
            "PATCH",
            f"/v1/teams/{segment(team_id)}",
            body=body_of({"name": name, "description": description}),
            options=options,
        )

    async def delete(self, team_id: str, *, options: CallOptions | None = None) -> None:
        """Delete a team, and with it the access that it gave.

        Access: admin on team in path. May also be refused with ``not-found``.
        """
        await self._do("DELETE", f"/v1/teams/{segment(team_id)}", options=options)
