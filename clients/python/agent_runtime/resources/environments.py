# Written by clients/generate from the API description.
"""Environments and their variables, which flows read. They are no secrets."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._page import Page
from .._protocol import body_of, segment
from .._resource import Resource
from .._transport import Transport


class EnvironmentsVariables(Resource):
    """Calls of ``environments.variables``."""

    def list(
        self,
        environment: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.Variable]:
        """List the variables of an environment by name.

        Access: read on tenant. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        """
        return self._list(
            types.Variable,
            f"/v1/environments/{segment(environment)}/variables",
            query={"cursor": cursor, "limit": limit},
            options=options,
        )

    def put(self, environment: str, name: str, *, value: str, options: CallOptions | None = None) -> types.Variable:
        """Put a variable: its value takes the place of the one that stands; runs that began before keep theirs.

        Access: admin on tenant. May also be refused with ``not-found``, ``already-exists``, ``conflict``,
        ``secrets-unavailable``.

        - ``value``: At most 32768 bytes of UTF-8 without NUL. Every member of the tenant can read it.
        """
        return self._call(
            types.Variable,
            "PUT",
            f"/v1/environments/{segment(environment)}/variables/{segment(name)}",
            body=body_of({"value": value}),
            options=options,
        )

    def get(self, environment: str, name: str, *, options: CallOptions | None = None) -> types.Variable:
        """Read a variable.

        Access: read on tenant. May also be refused with ``not-found``.
        """
        return self._call(
            types.Variable,
            "GET",
            f"/v1/environments/{segment(environment)}/variables/{segment(name)}",
            options=options,
        )

    def delete(self, environment: str, name: str, *, options: CallOptions | None = None) -> None:
        """Delete a variable; runs that began before keep it.

        Access: admin on tenant. May also be refused with ``not-found``.
        """
        self._do("DELETE", f"/v1/environments/{segment(environment)}/variables/{segment(name)}", options=options)


class Environments(Resource):
    """Environments and their variables, which flows read. They are no secrets."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.variables = EnvironmentsVariables(transport)

    def list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.Environment]:
        """List the environments by name.

        Access: read on tenant.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        """
        return self._list(
            types.Environment,
            "/v1/environments",
            query={"cursor": cursor, "limit": limit},
            options=options,
        )
