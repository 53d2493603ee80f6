# Written by clients/generate from the API description.
"""Projects hold agents, tools, conversations and runs. Who may do what in them, directly and through teams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .. import inputs, types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import Null, body_of, segment
from .._resource import AsyncResource
from .._transport import AsyncTransport


class AsyncProjectsMemberships(AsyncResource):
    """Calls of ``projects.memberships``."""

    async def add(
        self,
        project_id: str,
        *,
        role: Literal["owner", "admin", "editor", "viewer"] | str,
        user_id: str | Null | None = None,
        email: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Membership:
        """Add somebody to a project; the same role once more answers the membership as it is.

        Access: admin on project in path. May also be refused with ``role-not-given``, ``key-project-mismatch``,
        ``not-found``, ``membership-exists``, ``last-owner``, ``project-archived``, ``conflict``.

        - ``email``: Of one of the tenant's people, in any case.
        """
        return await self._call(
            types.Membership,
            "POST",
            f"/v1/projects/{segment(project_id)}/memberships",
            body=body_of({"userId": user_id, "email": email, "role": role}),
            options=options,
        )

    def list(
        self,
        project_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Membership]:
        """List the members of a project.

        Access: write on project in path. May also be refused with ``key-project-mismatch``, ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Membership,
            f"/v1/projects/{segment(project_id)}/memberships",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def update_role(
        self,
        project_id: str,
        user_id: str,
        *,
        role: Literal["owner", "admin", "editor", "viewer"] | str,
        options: CallOptions | None = None,
    ) -> types.Membership:
        """Change a member's role.

        Access: admin on project in path. May also be refused with ``role-not-given``, ``key-project-mismatch``,
        ``not-found``, ``last-owner``.
        """
        return await self._call(
            types.Membership,
            "PATCH",
            f"/v1/projects/{segment(project_id)}/memberships/{segment(user_id)}",
            body=body_of({"role": role}),
            options=options,
        )

    async def remove(self, project_id: str, user_id: str, *, options: CallOptions | None = None) -> None:
        """Remove a member from a project.

        Access: admin on project in path. May also be refused with ``key-project-mismatch``, ``not-found``,
        ``last-owner``.
        """
        await self._do("DELETE", f"/v1/projects/{segment(project_id)}/memberships/{segment(user_id)}", options=options)


class AsyncProjectsTeamGrants(AsyncResource):
    """Calls of ``projects.team_grants``."""

    async def add(
        self,
        project_id: str,
        *,
        team_id: str,
        role: Literal["admin", "editor", "viewer"] | str,
        options: CallOptions | None = None,
    ) -> types.TeamGrant:
        """Give a team a role on a project; the same role once more answers the grant as it is.

        Access: admin on project in path, and read on team in body. May also be refused with ``role-not-given``,
        ``key-project-mismatch``, ``not-found``, ``team-grant-exists``, ``project-archived``.
        """
        return await self._call(
            types.TeamGrant,
            "POST",
            f"/v1/projects/{segment(project_id)}/team-grants",
            body=body_of({"teamId": team_id, "role": role}),
            options=options,
        )

    def list(
        self,
        project_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.TeamGrant]:
        """List the teams with a role on a project.

        Access: write on project in path. May also be refused with ``key-project-mismatch``, ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.TeamGrant,
            f"/v1/projects/{segment(project_id)}/team-grants",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def update_role(
        self,
        project_id: str,
        team_id: str,
        *,
        role: Literal["admin", "editor", "viewer"] | str,
        options: CallOptions | None = None,
    ) -> types.TeamGrant:
        """Change a team's role on a project.

        Access: admin on project in path. May also be refused with ``role-not-given``, ``key-project-mismatch``,
        ``not-found``.
        """
        return await self._call(
            types.TeamGrant,
            "PATCH",
            f"/v1/projects/{segment(project_id)}/team-grants/{segment(team_id)}",
            body=body_of({"role": role}),
            options=options,
        )

    async def remove(self, project_id: str, team_id: str, *, options: CallOptions | None = None) -> None:
        """Take a team's role on a project.

        Access: admin on project in path. May also be refused with ``key-project-mismatch``, ``not-found``.
        """
        await self._do("DELETE", f"/v1/projects/{segment(project_id)}/team-grants/{segment(team_id)}", options=options)


class AsyncProjectsAccess(AsyncResource):
    """Calls of ``projects.access``."""

    def list(
        self,
        project_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.AccessEntry]:
        """List who has access to a project, by every way in; owners first, then by role and name.

        Access: write on project in path. May also be refused with ``key-project-mismatch``, ``not-found``,
        ``project-access-unsupported``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        """
        return self._list(
            types.AccessEntry,
            f"/v1/projects/{segment(project_id)}/access",
            query={"cursor": cursor, "limit": limit},
            options=options,
        )


class AsyncProjectsPolicies(AsyncResource):
    """Calls of ``projects.policies``."""

    async def get(self, project_id: str, *, options: CallOptions | None = None) -> types.Policy:
        """Read a project's policy: its newest version.

        Access: read on project in path. May also be refused with ``key-project-mismatch``, ``not-found``.
        """
        return await self._call(types.Policy, "GET", f"/v1/projects/{segment(project_id)}/policies", options=options)

    async def put(
        self,
        project_id: str,
        *,
        guardrails: Sequence[inputs.GuardrailInput | types.Guardrail],
        streaming: types.GuardrailStreaming | None = None,
        expected_version: int | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Policy:
        """Put a project's policy: the next version, which judges from then on, also runs that are under way.

        Access: admin on project in path. May also be refused with ``key-project-mismatch``, ``not-found``,
        ``project-archived``, ``conflict``.

        - ``guardrails``: Checks of what goes into runs and what comes out, in the order in which they judge. An empty
          list: none.
        - ``streaming``: When readers of a stream see text that a guardrail of the policy judges at ``output``. Left
          out: after the verdict.
        - ``expected_version``: The version that was read before, 0 if there was none: if another one is the newest,
          nothing changes and the answer is ``conflict``. Left out: whichever is the newest.
        """
        return await self._call(
            types.Policy,
            "PUT",
            f"/v1/projects/{segment(project_id)}/policies",
            body=body_of({"guardrails": guardrails, "streaming": streaming, "expectedVersion": expected_version}),
            options=options,
        )


class AsyncProjects(AsyncResource):
    """Projects hold agents, tools, conversations and runs. Who may do what in them, directly and through teams."""

    def __init__(self, transport: AsyncTransport) -> None:
        super().__init__(transport)
        self.memberships = AsyncProjectsMemberships(transport)
        self.team_grants = AsyncProjectsTeamGrants(transport)
        self.access = AsyncProjectsAccess(transport)
        self.policies = AsyncProjectsPolicies(transport)

    async def create(self, *, name: str, options: CallOptions | None = None) -> types.Project:
        """Make a project; its creator becomes its owner.

        Access: write on tenant.
        """
        return await self._call(types.Project, "POST", "/v1/projects", body=body_of({"name": name}), options=options)

    def list(
        self,
        *,
        archived: bool | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Project]:
        """List the projects that the caller may read.

        Access: readable projects. May also be refused with ``key-project-mismatch``.

        - ``archived``: True: those alone that are archived. False: the others.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Project,
            "/v1/projects",
            query={"archived": archived, "cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def get(self, project_id: str, *, options: CallOptions | None = None) -> types.Project:
        """Read a project.

        Access: read on project in path. May also be refused with ``key-project-mismatch``, ``not-found``.
        """
        return await self._call(types.Project, "GET", f"/v1/projects/{segment(project_id)}", options=options)

    async def update(self, project_id: str, *, name: str, options: CallOptions | None = None) -> types.Project:
        """Rename a project.

        Access: admin on project in path. May also be refused with ``key-project-mismatch``, ``not-found``.
        """
        return await self._call(
            types.Project,
            "PATCH",
            f"/v1/projects/{segment(project_id)}",
            body=body_of({"name": name}),
            options=options,
        )

    async def archive(self, project_id: str, *, options: CallOptions | None = None) -> types.Project:
        """Archive a project: lists leave it and its agents out, nothing new is made or started in it; runs under way go
        on.

        Access: admin on project in path. May also be refused with ``key-project-mismatch``, ``not-found``.
        """
        return await self._call(types.Project, "POST", f"/v1/projects/{segment(project_id)}/archive", options=options)

    async def unarchive(self, project_id: str, *, options: CallOptions | None = None) -> types.Project:
        """Bring an archived project back.

        Access: admin on project in path. May also be refused with ``key-project-mismatch``, ``not-found``.
        """
        return await self._call(types.Project, "POST", f"/v1/projects/{segment(project_id)}/unarchive", options=options)
