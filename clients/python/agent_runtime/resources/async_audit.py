# Written by clients/generate from the API description.
"""The recorded access decisions."""

from __future__ import annotations

from datetime import datetime

from .. import types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import segment
from .._resource import AsyncResource


class AsyncAudit(AsyncResource):
    """The recorded access decisions."""

    def authz(
        self,
        *,
        actor_subject: str | None = None,
        action: str | None = None,
        resource: str | None = None,
        outcome: types.DecisionOutcome | None = None,
        from_: datetime | str | None = None,
        to: datetime | str | None = None,
        run_id: str | None = None,
        request_id: str | None = None,
        order: types.Order | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.AccessDecision]:
        """List the tenant's access decisions, oldest first unless asked otherwise.

        Access: admin on tenant.

        - ``actor_subject``: Of this actor, as ``user:<user id>``.
        - ``action``: Of this action: ``read``, ``write``, ``admin`` or ``sign-in``.
        - ``resource``: On this resource, as ``<kind>:<id>``.
        - ``outcome``: With this outcome.
        - ``from_``: Decided then or later (RFC 3339).
        - ``to``: Decided before then (RFC 3339).
        - ``run_id``: About this run.
        - ``request_id``: Of this request: the ``requestId`` of an error, or the header ``x-request-id`` of an answer.
        - ``order``: The direction.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        """
        return self._list(
            types.AccessDecision,
            "/v1/audit/authz",
            query={
                "actorSubject": actor_subject,
                "action": action,
                "resource": resource,
                "outcome": outcome,
                "from": from_,
                "to": to,
                "runId": run_id,
                "requestId": request_id,
                "order": order,
                "cursor": cursor,
                "limit": limit,
            },
            options=options,
        )

    async def decision(self, decision_id: str, *, options: CallOptions | None = None) -> types.AccessDecision:
        """Read one of the tenant's access decisions.

        Access: admin on tenant. May also be refused with ``not-found``.
        """
        return await self._call(types.AccessDecision, "GET", f"/v1/audit/authz/{segment(decision_id)}", options=options)
