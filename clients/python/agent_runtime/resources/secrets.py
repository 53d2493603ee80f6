# Written by clients/generate from the API description.
"""Values that model providers and webhooks use by name. They are never shown."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._page import Page
from .._protocol import body_of, segment
from .._resource import Resource


class Secrets(Resource):
    """Values that model providers and webhooks use by name. They are never shown."""

    def put(self, environment: str, name: str, *, value: str, options: CallOptions | None = None) -> types.Secret:
        """Put a secret: its value takes the place of the one that stands.

        Access: admin on tenant. May also be refused with ``not-found``, ``already-exists``, ``conflict``,
        ``not-configured``, ``secrets-unavailable``.

        - ``value``: 1 to 65536 bytes of UTF-8 without NUL. It is never shown again.
        """
        return self._call(
            types.Secret,
            "PUT",
            f"/v1/secrets/{segment(environment)}/{segment(name)}",
            body=body_of({"value": value}),
            options=options,
        )

    def get(self, environment: str, name: str, *, options: CallOptions | None = None) -> types.Secret:
        """Read what is known of a secret, without its value.

        Access: admin on tenant. May also be refused with ``not-found``, ``not-configured``, ``secrets-unavailable``.
        """
        return self._call(types.Secret, "GET", f"/v1/secrets/{segment(environment)}/{segment(name)}", options=options)

    def delete(self, environment: str, name: str, *, options: CallOptions | None = None) -> None:
        """Delete a secret with its versions.

        Access: admin on tenant. May also be refused with ``not-found``, ``not-configured``, ``secrets-unavailable``.
        """
        self._do("DELETE", f"/v1/secrets/{segment(environment)}/{segment(name)}", options=options)

    def list(
        self,
        *,
        environment: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.Secret]:
        """List the secrets by environment and name, without their values.

        Access: admin on tenant. May also be refused with ``not-configured``, ``secrets-unavailable``.

        - ``environment``: Of this environment alone.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: By name; the first comes first unless asked otherwise.
        """
        return self._list(
            types.Secret,
            "/v1/secrets",
            query={"environment": environment, "cursor": cursor, "limit": limit, "order": order},
            options=options,
        )
