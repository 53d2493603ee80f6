# Written by clients/generate from the API description.
"""What waits for the caller."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._page import Page
from .._resource import Resource


class Inbox(Resource):
    """What waits for the caller."""

    def list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.InboxItem]:
        """List what waits for the caller: first what is assigned to the caller, then what is assigned to nobody, each by
        its end.

        Access: a reviewer. May also be refused with ``key-project-mismatch``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        """
        return self._list(types.InboxItem, "/v1/inbox", query={"cursor": cursor, "limit": limit}, options=options)

    def summary(self, *, options: CallOptions | None = None) -> types.InboxSummary:
        """Count what waits for the caller, by kind.

        Access: a reviewer. May also be refused with ``key-project-mismatch``.
        """
        return self._call(types.InboxSummary, "GET", "/v1/inbox/summary", options=options)
