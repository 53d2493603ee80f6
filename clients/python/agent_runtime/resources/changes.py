# Written by clients/generate from the API description.
"""Hints that something changed, so that a page reads it again."""

from __future__ import annotations

from collections.abc import Sequence

from .. import types
from .._following import MAX_SILENCE
from .._options import CallOptions
from .._resource import Resource
from .._stream import Stream


class Changes(Resource):
    """Hints that something changed, so that a page reads it again."""

    def follow(
        self,
        *,
        kind: Sequence[types.ChangeKind] | None = None,
        project_id: str | None = None,
        max_silence: float = MAX_SILENCE,
        options: CallOptions | None = None,
    ) -> Stream[types.ChangeStreamEvent]:
        """Be told, as server-sent events, which of the objects change that the caller may list.

        Access: readable changes. May also be refused with ``key-project-mismatch``.

        - ``kind``: Of this kind; given several times: of all of them. Left out: of every kind that the caller may list.
        - ``project_id``: In this project.
        - ``max_silence``: seconds without a byte, after which it connects again.
        """
        return self._stream(
            types.MAKERS["ChangeStreamEvent"],
            "/v1/changes/stream",
            query={"kind": kind, "projectId": project_id},
            after=None,
            max_silence=max_silence,
            options=options,
        )
