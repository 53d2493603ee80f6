# Written by clients/generate from the API description.
"""What model calls used and cost, summed over days, projects, agents and models."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from .. import types
from .._options import CallOptions
from .._resource import Resource


class Usage(Resource):
    """What model calls used and cost, summed over days, projects, agents and models."""

    def sum(
        self,
        *,
        by: Sequence[types.UsageGroup] | None = None,
        from_: datetime | str | None = None,
        to: datetime | str | None = None,
        project_id: str | None = None,
        agent_id: str | None = None,
        options: CallOptions | None = None,
    ) -> types.UsageReport:
        """Sum what the model calls of the runs used that the caller may read; a run counts on the day on which it was
        created.

        Access: readable runs. May also be refused with ``key-project-mismatch``.

        - ``by``: What has sums of its own; given several times: each combination that there is. Left out: one sum of
          all.
        - ``from_``: Of runs created then or later (RFC 3339); left out: 30 days before ``to``. Not more than 92 days
          before it.
        - ``to``: Of runs created before then (RFC 3339); left out: now.
        - ``project_id``: In this project.
        - ``agent_id``: Of this agent.
        """
        return self._call(
            types.UsageReport,
            "GET",
            "/v1/usage",
            query={"by": by, "from": from_, "to": to, "projectId": project_id, "agentId": agent_id},
            options=options,
        )
