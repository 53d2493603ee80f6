# Written by clients/generate from the API description.
"""HTTP tools of a project, which its agents may call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import inputs, types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import Null, body_of, segment
from .._resource import AsyncResource


class AsyncTools(AsyncResource):
    """HTTP tools of a project, which its agents may call."""

    async def register(
        self,
        *,
        project_id: str,
        name: str,
        description: str,
        arguments_schema: Mapping[str, Any] | Null | None = None,
        url: str | Null | None = None,
        agent: inputs.NewToolAgentInput | Null | None = None,
        flow: inputs.NewToolFlowInput | Null | None = None,
        timeout_ms: int | Null | None = None,
        idempotent: bool | None = None,
        dry_run: types.ToolDryRun | Null | None = None,
        headers: Sequence[inputs.ToolHeaderInput | types.ToolHeader] | None = None,
        signing_secret: str | Null | None = None,
        approval: inputs.ToolApprovalInput | types.ToolApproval | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Tool:
        """Register a tool in a project: an HTTP server, an agent or a flow.

        Access: admin on project in body. May also be refused with ``key-project-mismatch``, ``host-access-denied``,
        ``not-found``, ``already-exists``, ``project-archived``, ``agent-archived``, ``flow-archived``, ``conflict``.

        - ``name``: What the model calls it by: letters, digits, ``_`` and ``-``; unique in the project.
        - ``description``: What the model is told of it.
        - ``arguments_schema``: The JSON Schema of the arguments object: 64 KiB at most, with references into itself
          alone. Its fields keep their order. Of a flow, left out: ``input.schema`` of the version that it would run
          now. Of an agent it is left out: that takes a ``message``.
        - ``url``: Of an HTTP server: where it is called, with POST.
        - ``agent``: A call is a turn of this agent, without a conversation, in a run below the caller's.
        - ``flow``: A call is a run of this flow below the caller's.
        - ``timeout_ms``: Of an HTTP server: how long a call may take.
        - ``idempotent``: Of an HTTP server: it may be called again when a crash or a lost connection leaves it open
          whether it was called.
        - ``dry_run``: Of an HTTP server: what a dry run does with a call. Say ``call`` only of a tool that changes
          nothing while ``dryRun`` of its call is true. Nobody is asked for an approval in a dry run.
        - ``headers``: Of an HTTP server: headers of each call whose values are secrets. Each needs a use for the origin
          of ``url`` and the project (``/v1/secret-uses``). A tenant admin with a key that has ``secrets:write`` creates
          missing uses with the tool.
        - ``signing_secret``: Of an HTTP server: the name of the secret that signs each call, as Standard Webhooks says.
          It needs a use, too.
        - ``approval``: Each call waits until a reviewer has approved it.
        """
        return await self._call(
            types.Tool,
            "POST",
            "/v1/tools",
            body=body_of({
                "projectId": project_id,
                "name": name,
                "description": description,
                "argumentsSchema": arguments_schema,
                "url": url,
                "agent": agent,
                "flow": flow,
                "timeoutMs": timeout_ms,
                "idempotent": idempotent,
                "dryRun": dry_run,
                "headers": headers,
                "signingSecret": signing_secret,
                "approval": approval,
            }),
            options=options,
        )

    def list(
        self,
        *,
        project_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Tool]:
        """List the tools that the caller may read.

        Access: readable tools. May also be refused with ``key-project-mismatch``.

        - ``project_id``: In this project.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Tool,
            "/v1/tools",
            query={"projectId": project_id, "cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def get(self, tool_id: str, *, options: CallOptions | None = None) -> types.Tool:
        """Read a tool.

        Access: read on tool in path. May also be refused with ``not-found``.
        """
        return await self._call(types.Tool, "GET", f"/v1/tools/{segment(tool_id)}", options=options)

    async def delete(self, tool_id: str, *, options: CallOptions | None = None) -> None:
        """Delete a tool that no version of an agent or of a flow calls.

        Access: admin on tool in path. May also be refused with ``not-found``, ``conflict``.
        """
        await self._do("DELETE", f"/v1/tools/{segment(tool_id)}", options=options)
