# Written by clients/generate from the API description.
"""Agents of a project: what each is told, in versions that never change, and which version is live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import inputs, types
from .._options import CallOptions
from .._page import Page
from .._protocol import Null, body_of, segment
from .._resource import Resource
from .._transport import Transport


class AgentsVersions(Resource):
    """Calls of ``agents.versions``."""

    def create(
        self,
        agent_id: str,
        *,
        instructions: str,
        model_provider_id: str,
        model: str,
        version: str | Null | None = None,
        parameters: inputs.ModelParametersInput | types.ModelParameters | None = None,
        tool_ids: Sequence[str] | None = None,
        limits: inputs.LimitsInput | types.Limits | None = None,
        output_schema: Mapping[str, Any] | Null | None = None,
        overrides: Sequence[types.Override] | None = None,
        guardrails: Sequence[inputs.GuardrailInput | types.Guardrail] | None = None,
        streaming: types.GuardrailStreaming | None = None,
        options: CallOptions | None = None,
    ) -> types.AgentVersion:
        """Make a version of an agent; it is never changed.

        Access: write on agent in path. May also be refused with ``not-found``, ``already-exists``,
        ``project-archived``, ``agent-archived``, ``conflict``.

        - ``instructions``: What the model is told first.
        - ``model``: One of the provider's models.
        - ``version``: Left out: 0.1.0, or what follows the latest (the next patch; of a pre-release, its release).
        - ``tool_ids``: Tools of the agent's project that the model may call.
        - ``output_schema``: The JSON Schema that the answer of a turn fits: an object, 64 KiB at most, with references
          into itself alone. A model whose answer does not fit is told why and asked again, twice at most; then the turn
          fails. Left out: an answer is text.
        - ``overrides``: What a run may set in place of the version's own, with ``overrides`` at its start. Left out:
          nothing.
        - ``guardrails``: Checks of what goes into a turn and what comes out, in this order, after those of the tenant's
          and the project's policies.
        - ``streaming``: When readers of a stream see text that a guardrail of the version judges at ``output``. Left
          out: after the verdict.
        """
        return self._call(
            types.AgentVersion,
            "POST",
            f"/v1/agents/{segment(agent_id)}/versions",
            body=body_of({
                "version": version,
                "instructions": instructions,
                "modelProviderId": model_provider_id,
                "model": model,
                "parameters": parameters,
                "toolIds": tool_ids,
                "limits": limits,
                "outputSchema": output_schema,
                "overrides": overrides,
                "guardrails": guardrails,
                "streaming": streaming,
            }),
            options=options,
        )

    def list(
        self,
        agent_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.ListedAgentVersion]:
        """List the versions of an agent, in the order of making.

        Access: read on agent in path. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.ListedAgentVersion,
            f"/v1/agents/{segment(agent_id)}/versions",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    def get(self, agent_id: str, version: str, *, options: CallOptions | None = None) -> types.AgentVersion:
        """Read a version of an agent.

        Access: read on agent in path. May also be refused with ``not-found``.
        """
        return self._call(
            types.AgentVersion,
            "GET",
            f"/v1/agents/{segment(agent_id)}/versions/{segment(version)}",
            options=options,
        )


class Agents(Resource):
    """Agents of a project: what each is told, in versions that never change, and which version is live."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.versions = AgentsVersions(transport)

    def create(
        self,
        *,
        project_id: str,
        name: str,
        description: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Agent:
        """Register an agent in a project.

        Access: admin on project in body. May also be refused with ``key-project-mismatch``, ``not-found``,
        ``already-exists``, ``project-archived``.

        - ``name``: Unique in the project.
        """
        return self._call(
            types.Agent,
            "POST",
            "/v1/agents",
            body=body_of({"projectId": project_id, "name": name, "description": description}),
            options=options,
        )

    def list(
        self,
        *,
        project_id: str | None = None,
        archived: bool | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.Agent]:
        """List the agents that the caller may read.

        Access: readable agents. May also be refused with ``key-project-mismatch``.

        - ``project_id``: In this project.
        - ``archived``: True: those alone that are archived or whose project is. False: the others.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Agent,
            "/v1/agents",
            query={
                "projectId": project_id,
                "archived": archived,
                "cursor": cursor,
                "limit": limit,
                "order": order,
            },
            options=options,
        )

    def get(self, agent_id: str, *, options: CallOptions | None = None) -> types.Agent:
        """Read an agent.

        Access: read on agent in path. May also be refused with ``not-found``.
        """
        return self._call(types.Agent, "GET", f"/v1/agents/{segment(agent_id)}", options=options)

    def update(
        self,
        agent_id: str,
        *,
        name: str | Null | None = None,
        description: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Agent:
        """Change an agent's name or description; what is left out stays.

        Access: admin on agent in path. May also be refused with ``not-found``, ``already-exists``.
        """
        return self._call(
            types.Agent,
            "PATCH",
            f"/v1/agents/{segment(agent_id)}",
            body=body_of({"name": name, "description": description}),
            options=options,
        )

    def promote(self, agent_id: str, *, version: str | Null, options: CallOptions | None = None) -> types.Agent:
        """Make a version the live one of the agent's project; null leaves none live.

        Access: admin on agent in path. May also be refused with ``not-found``.

        - ``version``: Null: none is live.
        """
        return self._call(
            types.Agent,
            "POST",
            f"/v1/agents/{segment(agent_id)}/promote",
            body=body_of({"version": version}),
            options=options,
        )

    def archive(self, agent_id: str, *, options: CallOptions | None = None) -> types.Agent:
        """Archive an agent: lists leave it out, it starts nothing and gets no versions; runs under way go on.

        Access: admin on agent in path. May also be refused with ``not-found``.
        """
        return self._call(types.Agent, "POST", f"/v1/agents/{segment(agent_id)}/archive", options=options)

    def unarchive(self, agent_id: str, *, options: CallOptions | None = None) -> types.Agent:
        """Bring an archived agent back.

        Access: admin on agent in path. May also be refused with ``not-found``.
        """
        return self._call(types.Agent, "POST", f"/v1/agents/{segment(agent_id)}/unarchive", options=options)
