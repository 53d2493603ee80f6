# Written by clients/generate from the API description.
"""Accounts of programs, and their bearer tokens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from .. import types
from .._options import CallOptions
from .._page import Page
from .._protocol import Null, body_of, segment
from .._resource import Resource
from .._transport import Transport


class ServiceAccountsTokens(Resource):
    """Calls of ``service_accounts.tokens``."""

    def create(
        self,
        service_account_id: str,
        *,
        name: str,
        role: types.KeyRole | Null | None = None,
        capabilities: Sequence[types.Capability] | Null | None = None,
        project_id: str | Null | None = None,
        expires_at: datetime | str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.MintedToken:
        """Mint a key of a service account; it is shown once.

        Access: admin on service-account in path. May also be refused with ``role-exceeds-principal``,
        ``key-project-mismatch``, ``not-found``, ``conflict``.

        - ``role``: Not above the owner's role in the tenant.
        - ``project_id``: The one project that the token is limited to.
        - ``expires_at``: When the token ends by itself.
        """
        return self._call(
            types.MintedToken,
            "POST",
            f"/v1/service-accounts/{segment(service_account_id)}/tokens",
            body=body_of({
                "name": name,
                "role": role,
                "capabilities": capabilities,
                "projectId": project_id,
                "expiresAt": expires_at,
            }),
            options=options,
        )

    def list(
        self,
        service_account_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.Token]:
        """List the keys of a service account.

        Access: admin on service-account in path. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Token,
            f"/v1/service-accounts/{segment(service_account_id)}/tokens",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    def revoke(self, service_account_id: str, token_id: str, *, options: CallOptions | None = None) -> None:
        """Revoke a key of a service account.

        Access: admin on service-account in path. May also be refused with ``not-found``.
        """
        self._do(
            "DELETE",
            f"/v1/service-accounts/{segment(service_account_id)}/tokens/{segment(token_id)}",
            options=options,
        )


class ServiceAccounts(Resource):
    """Accounts of programs, and their bearer tokens."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.tokens = ServiceAccountsTokens(transport)

    def create(self, *, name: str, options: CallOptions | None = None) -> types.ServiceAccount:
        """Add a service account.

        Access: admin on tenant. May also be refused with ``already-exists``.
        """
        return self._call(
            types.ServiceAccount,
            "POST",
            "/v1/service-accounts",
            body=body_of({"name": name}),
            options=options,
        )

    def list(
        self,
        *,
        status: types.UserStatus | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.ServiceAccount]:
        """List the tenant's service accounts.

        Access: admin on tenant.

        - ``status``: With this status.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.ServiceAccount,
            "/v1/service-accounts",
            query={"status": status, "cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    def get(self, service_account_id: str, *, options: CallOptions | None = None) -> types.ServiceAccount:
        """Read a service account.

        Access: admin on service-account in path. May also be refused with ``not-found``.
        """
        return self._call(
            types.ServiceAccount,
            "GET",
            f"/v1/service-accounts/{segment(service_account_id)}",
            options=options,
        )

    def update(self, service_account_id: str, *, name: str, options: CallOptions | None = None) -> types.ServiceAccount:
        """Rename a service account.

        Access: admin on service-account in path. May also be refused with ``not-found``, ``already-exists``,
        ``conflict``.
        """
        return self._call(
            types.ServiceAccount,
            "PATCH",
            f"/v1/service-accounts/{segment(service_account_id)}",
            body=body_of({"name": name}),
            options=options,
        )

    def deactivate(self, service_account_id: str, *, options: CallOptions | None = None) -> types.ServiceAccount:
        """Deactivate a service account: its keys and permissions end.

        Access: admin on service-account in path. May also be refused with ``not-found``, ``last-admin``.
        """
        return self._call(
            types.ServiceAccount,
            "POST",
            f"/v1/service-accounts/{segment(service_account_id)}/deactivate",
            options=options,
        )
