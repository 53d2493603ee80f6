# Written by clients/generate from the API description.
"""What runs ask reviewers, and what these decide."""

from __future__ import annotations

from typing import Any, Literal

from .. import types
from .._following import MAX_SILENCE
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import Null, body_of, segment
from .._resource import AsyncResource
from .._stream import AsyncStream


class AsyncApprovals(AsyncResource):
    """What runs ask reviewers, and what these decide."""

    def list(
        self,
        *,
        status: types.ApprovalStatus | None = None,
        role: str | None = None,
        project_id: str | None = None,
        run_id: str | None = None,
        assigned_to: Literal["me", "none"] | str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.Approval]:
        """List the approvals of the caller's reviewer roles, those that wait unless asked otherwise.

        Access: a reviewer. May also be refused with ``key-project-mismatch``.

        - ``status``: That stand so; left out: those that wait.
        - ``role``: Of this reviewer role.
        - ``project_id``: In this project.
        - ``run_id``: Of this run.
        - ``assigned_to``: Assigned to the caller (``me``), to nobody (``none``), or to this person.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Approval,
            "/v1/approvals",
            query={
                "status": status,
                "role": role,
                "projectId": project_id,
                "runId": run_id,
                "assignedTo": assigned_to,
                "cursor": cursor,
                "limit": limit,
                "order": order,
            },
            options=options,
        )

    def follow(
        self,
        *,
        after: int | None = None,
        max_silence: float = MAX_SILENCE,
        options: CallOptions | None = None,
    ) -> AsyncStream[types.ApprovalStreamEvent]:
        """Follow what happens to the approvals of the caller's reviewer roles as server-sent events.

        Access: a reviewer.

        - ``after``: the number of the event after which it begins.
        - ``max_silence``: seconds without a byte, after which it connects again.
        """
        return self._stream(
            types.MAKERS["ApprovalStreamEvent"],
            "/v1/approvals/stream",
            after=after,
            max_silence=max_silence,
            options=options,
        )

    async def get(self, approval_id: str, *, options: CallOptions | None = None) -> types.WholeApproval:
        """Read an approval with what it is about.

        Access: a reviewer with the role of approval in path. May also be refused with ``not-found``.
        """
        return await self._call(types.WholeApproval, "GET", f"/v1/approvals/{segment(approval_id)}", options=options)

    async def decide(
        self,
        approval_id: str,
        *,
        decision: types.Verdict,
        comment: str | Null | None = None,
        answer: Any = None,
        arguments: Any = None,
        expected_digest: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.WholeApproval:
        """Approve or reject; the same decision of the same reviewer again changes nothing.

        Access: a reviewer with the role of approval in path who did not start the run. May also be refused with
        ``approval-own-request``, ``not-found``, ``approval-closed``, ``approval-changed``.

        - ``comment``: Why. The run gets to read it.
        - ``answer``: What the run gets to read beside: any JSON, 64 KiB at most. If the subject has a ``form``, it has
          to fit that.
        - ``arguments``: Of a tool call that is approved: what the tool is called with in place of the subject's
          ``arguments``. They have to fit the tool's schema, and the model is told that they are the reviewer's.
        - ``expected_digest``: The subject's ``digest`` that was read: of anything else nothing is decided.
        """
        return await self._call(
            types.WholeApproval,
            "POST",
            f"/v1/approvals/{segment(approval_id)}/decide",
            body=body_of({
                "decision": decision,
                "comment": comment,
                "answer": answer,
                "arguments": arguments,
                "expectedDigest": expected_digest,
            }),
            options=options,
        )

    async def assign(
        self,
        approval_id: str,
        *,
        user_id: str | Null | None = None,
        email: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Approval:
        """Assign an approval that waits to a reviewer with its role, or to nobody.

        Access: a reviewer with the role of approval in path who did not start the run. May also be refused with
        ``approval-own-request``, ``not-found``, ``approval-closed``, ``conflict``.

        - ``email``: In any case.
        """
        return await self._call(
            types.Approval,
            "POST",
            f"/v1/approvals/{segment(approval_id)}/assign",
            body=body_of({"userId": user_id, "email": email}),
            options=options,
        )

    async def escalate(
        self,
        approval_id: str,
        *,
        required_role: str | Null | None = None,
        user_id: str | Null | None = None,
        email: str | Null | None = None,
        comment: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Approval:
        """Close an approval that waits, and open another for another role in its place.

        Access: a reviewer with the role of approval in path who did not start the run. May also be refused with
        ``approval-own-request``, ``not-found``, ``approval-closed``, ``conflict``.

        - ``required_role``: A reviewer role; left out: the one that the approval names for its escalation.
        - ``user_id``: Whom the new approval is assigned to. Left out with ``requiredRole``: whom the approval names for
          its escalation.
        - ``email``: The same, in any case.
        - ``comment``: Why.
        """
        return await self._call(
            types.Approval,
            "POST",
            f"/v1/approvals/{segment(approval_id)}/escalate",
            body=body_of({"requiredRole": required_role, "userId": user_id, "email": email, "comment": comment}),
            options=options,
        )
