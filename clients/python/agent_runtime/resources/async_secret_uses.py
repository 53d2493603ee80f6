# Written by clients/generate from the API description.
"""Where a secret may be sent, by name: to which HTTP servers, for which project."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import Null, body_of, segment
from .._resource import AsyncResource


class AsyncSecretUses(AsyncResource):
    """Where a secret may be sent, by name: to which HTTP servers, for which project."""

    async def create(
        self,
        *,
        name: str,
        target: str,
        project_id: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.SecretUse:
        """Allow a secret to be sent to a target.

        Access: admin on tenant. May also be refused with ``key-project-mismatch``, ``already-exists``, ``conflict``.

        - ``name``: The secret's name. It need not be there yet.
        - ``target``: ``origin:`` and the scheme, host and port of the HTTP servers that may get it.
        - ``project_id``: For this project alone; left out: for every project.
        """
        return await self._call(
            types.SecretUse,
            "POST",
            "/v1/secret-uses",
            body=body_of({"name": name, "target": target, "projectId": project_id}),
            options=options,
        )

    def list(
        self,
        *,
        name: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.SecretUse]:
        """List the uses of secrets.

        Access: admin on tenant.

        - ``name``: Of the secret of this name alone.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.SecretUse,
            "/v1/secret-uses",
            query={"name": name, "cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def delete(self, secret_use_id: str, *, options: CallOptions | None = None) -> None:
        """Delete a use of a secret: calls of tools that need it are not made any more, also those of runs under way.

        Access: admin on secret-use in path. May also be refused with ``not-found``.
        """
        await self._do("DELETE", f"/v1/secret-uses/{segment(secret_use_id)}", options=options)
