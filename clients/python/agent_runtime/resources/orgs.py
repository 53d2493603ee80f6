# Written by clients/generate from the API description.
"""Groups of projects with admins of their own."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._page import Page
from .._protocol import Null, body_of, segment
from .._resource import Resource
from .._transport import Transport


class OrgsAdmins(Resource):
    """Calls of ``orgs.admins``."""

    def add(
        self,
        org_id: str,
        *,
        user_id: str | Null | None = None,
        email: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.OrgAdmin:
        """Make a person an admin of an org; one who is stays as they are.

        Access: admin on org in path. May also be refused with ``not-found``, ``conflict``.

        - ``email``: In any case.
        """
        return self._call(
            types.OrgAdmin,
            "POST",
            f"/v1/orgs/{segment(org_id)}/admins",
            body=body_of({"userId": user_id, "email": email}),
            options=options,
        )

    def list(
        self,
        org_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.OrgAdmin]:
        """List the admins of an org.

        Access: admin on org in path. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.OrgAdmin,
            f"/v1/orgs/{segment(org_id)}/admins",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    def remove(self, org_id: str, user_id: str, *, options: CallOptions | None = None) -> None:
        """Take an org from one of its admins.

        Access: admin on org in path. May also be refused with ``not-found``.
        """
        self._do("DELETE", f"/v1/orgs/{segment(org_id)}/admins/{segment(user_id)}", options=options)


class OrgsProjects(Resource):
    """Calls of ``orgs.projects``."""

    def create(self, org_id: str, *, name: str, options: CallOptions | None = None) -> types.Project:
        """Make a project in an org; its creator becomes its owner.

        Access: admin on org in path. May also be refused with ``not-found``.
        """
        return self._call(
            types.Project,
            "POST",
            f"/v1/orgs/{segment(org_id)}/projects",
            body=body_of({"name": name}),
            options=options,
        )


class Orgs(Resource):
    """Groups of projects with admins of their own."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.admins = OrgsAdmins(transport)
        self.projects = OrgsProjects(transport)

    def create(self, *, name: str, options: CallOptions | None = None) -> types.Org:
        """Make an org.

        Access: admin on tenant. May also be refused with ``already-exists``.
        """
        return self._call(types.Org, "POST", "/v1/orgs", body=body_of({"name": name}), options=options)

    def list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.Org]:
        """List the orgs: a tenant admin's are all, another's those that they are an admin of.

        Access: readable orgs. May also be refused with ``key-project-mismatch``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Org,
            "/v1/orgs",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    def get(self, org_id: str, *, options: CallOptions | None = None) -> types.Org:
        """Read an org.

        Access: read on org in path. May also be refused with ``not-found``.
        """
        return self._call(types.Org, "GET", f"/v1/orgs/{segment(org_id)}", options=options)

    def update(self, org_id: str, *, name: str, options: CallOptions | None = None) -> types.Org:
        """Rename an org.

        Access: admin on org in path. May also be refused with ``not-found``, ``already-exists``.
        """
        return self._call(
            types.Org,
            "PATCH",
            f"/v1/orgs/{segment(org_id)}",
            body=body_of({"name": name}),
            options=options,
        )
