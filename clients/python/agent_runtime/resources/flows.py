# Written by clients/generate from the API description.
"""Flows of a project: what each does, step by step, in versions that never change, and which version is live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import types
from .._options import CallOptions
from .._page import Page
from .._protocol import Null, body_of, segment
from .._resource import Resource
from .._transport import Transport


class FlowsVersions(Resource):
    """Calls of ``flows.versions``."""

    def create(
        self,
        id: str,
        *,
        definition: Mapping[str, Any],
        options: CallOptions | None = None,
    ) -> types.MadeFlowVersion:
        """Make a version of a flow; it is never changed. The same one once more answers what stands.

        Access: write on flow in path. May also be refused with ``flow-invalid``, ``not-found``, ``already-exists``,
        ``project-archived``, ``flow-archived``, ``conflict``.

        - ``definition``: Its ``document`` names the flow, and the version.
        """
        return self._call(
            types.MadeFlowVersion,
            "POST",
            f"/v1/flows/{segment(id)}/versions",
            body=body_of({"definition": definition}),
            options=options,
        )

    def list(
        self,
        id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.ListedFlowVersion]:
        """List the versions of a flow, in the order of making.

        Access: read on flow in path. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.ListedFlowVersion,
            f"/v1/flows/{segment(id)}/versions",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    def get(self, id: str, version: str, *, options: CallOptions | None = None) -> types.FlowVersion:
        """Read a version of a flow.

        Access: read on flow in path. May also be refused with ``not-found``.
        """
        return self._call(
            types.FlowVersion,
            "GET",
            f"/v1/flows/{segment(id)}/versions/{segment(version)}",
            options=options,
        )

    def graph(self, id: str, version: str, *, options: CallOptions | None = None) -> types.FlowNode:
        """Read the tasks of a version as nested boxes, with what follows each.

        Access: read on flow in path. May also be refused with ``flow-invalid``, ``not-found``.
        """
        return self._call(
            types.FlowNode,
            "GET",
            f"/v1/flows/{segment(id)}/versions/{segment(version)}/graph",
            options=options,
        )


class Flows(Resource):
    """Flows of a project: what each does, step by step, in versions that never change, and which version is live."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.versions = FlowsVersions(transport)

    def validate(
        self,
        *,
        project_id: str,
        definition: Mapping[str, Any],
        options: CallOptions | None = None,
    ) -> types.CheckedFlow:
        """Check a definition in a project; nothing is stored.

        Access: write on project in body. May also be refused with ``key-project-mismatch``, ``not-found``.

        - ``definition``: In the Open Workflow DSL 1.0, as far as it is taken.
        """
        return self._call(
            types.CheckedFlow,
            "POST",
            "/v1/flows/validate",
            body=body_of({"projectId": project_id, "definition": definition}),
            options=options,
        )

    def create(
        self,
        *,
        project_id: str,
        definition: Mapping[str, Any],
        options: CallOptions | None = None,
    ) -> types.RegisteredFlow:
        """Register a flow in a project, with its first version.

        Access: admin on project in body. May also be refused with ``flow-invalid``, ``key-project-mismatch``,
        ``not-found``, ``already-exists``, ``project-archived``, ``conflict``.

        - ``definition``: In the Open Workflow DSL 1.0, as far as it is taken.
        """
        return self._call(
            types.RegisteredFlow,
            "POST",
            "/v1/flows",
            body=body_of({"projectId": project_id, "definition": definition}),
            options=options,
        )

    def list(
        self,
        *,
        project_id: str | None = None,
        flow_id: str | None = None,
        archived: bool | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.Flow]:
        """List the flows that the caller may read.

        Access: readable flows. May also be refused with ``key-project-mismatch``.

        - ``project_id``: In this project.
        - ``flow_id``: Of this id; of each project that has one.
        - ``archived``: True: those alone that are archived or whose project is. False: the others.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Flow,
            "/v1/flows",
            query={
                "projectId": project_id,
                "flowId": flow_id,
                "archived": archived,
                "cursor": cursor,
                "limit": limit,
                "order": order,
            },
            options=options,
        )

    def get(self, id: str, *, options: CallOptions | None = None) -> types.Flow:
        """Read a flow.

        Access: read on flow in path. May also be refused with ``not-found``.
        """
        return self._call(types.Flow, "GET", f"/v1/flows/{segment(id)}", options=options)

    def update(
        self,
        id: str,
        *,
        title: str | Null | None = None,
        description: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Flow:
        """Change a flow's title or description; what is left out stays.

        Access: admin on flow in path. May also be refused with ``not-found``.
        """
        return self._call(
            types.Flow,
            "PATCH",
            f"/v1/flows/{segment(id)}",
            body=body_of({"title": title, "description": description}),
            options=options,
        )

    def promote(self, id: str, *, version: str | Null, options: CallOptions | None = None) -> types.Flow:
        """Make a version the live one of the flow's project; null leaves none live.

        Access: admin on flow in path. May also be refused with ``not-found``.

        - ``version``: Null: none is live.
        """
        return self._call(
            types.Flow,
            "POST",
            f"/v1/flows/{segment(id)}/promote",
            body=body_of({"version": version}),
            options=options,
        )

    def archive(self, id: str, *, options: CallOptions | None = None) -> types.Flow:
        """Archive a flow: lists leave it out, it starts nothing and gets no versions; runs under way go on.

        Access: admin on flow in path. May also be refused with ``not-found``.
        """
        return self._call(types.Flow, "POST", f"/v1/flows/{segment(id)}/archive", options=options)

    def unarchive(self, id: str, *, options: CallOptions | None = None) -> types.Flow:
        """Bring an archived flow back.

        Access: admin on flow in path. May also be refused with ``not-found``.
        """
        return self._call(types.Flow, "POST", f"/v1/flows/{segment(id)}/unarchive", options=options)
