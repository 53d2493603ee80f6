# Written by clients/generate from the API description.
"""OpenID Connect issuers by which people sign in, the email domains that each speaks for, and the teams of its groups."""

from __future__ import annotations

from collections.abc import Sequence

from .. import inputs, types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import Null, body_of, segment
from .._resource import AsyncResource


class AsyncIdentityProviders(AsyncResource):
    """OpenID Connect issuers by which people sign in, the email domains that each speaks for, and the teams of its groups.
    """

    async def create(
        self,
        *,
        name: str,
        issuer: str,
        client_id: str,
        client_secret_ref: inputs.SecretRefInput | types.SecretRef | Null | None = None,
        scopes: Sequence[str] | None = None,
        email_domains: Sequence[str] | None = None,
        email_trust: types.EmailTrust | None = None,
        creates_people: bool | None = None,
        groups_claim: str | Null | None = None,
        groups: Sequence[inputs.IdentityProviderGroupInput | types.IdentityProviderGroup] | None = None,
        options: CallOptions | None = None,
    ) -> types.IdentityProvider:
        """Register an identity provider by which people sign in.

        Access: admin on tenant. May also be refused with ``identity-providers-operator-managed``,
        ``host-access-denied``, ``already-exists``, ``conflict``, ``secrets-unavailable``.

        - ``name``: What the sign-in page calls it; unique in the tenant.
        - ``issuer``: The issuer, byte for byte as its own document names it: https, without a query. It cannot be
          changed.
        - ``client_id``: What the provider calls this server.
        - ``client_secret_ref``: The secret that goes with it; none for a public client.
        - ``scopes``: Scopes beside ``openid``, ``email`` and ``profile``.
        - ``email_domains``: The email domains that it speaks for, which no other provider of the tenant does. In ASCII
          form (``xn--…``). An email of another domain signs nobody in for the first time.
        - ``email_trust``: ``provider`` takes its word for every email, also where it does not say that it verified it:
          only where nobody chooses an email of their own there.
        - ``creates_people``: Whether somebody whom nobody added becomes a member by signing in.
        - ``groups_claim``: The claim that has a person's groups. None: groups are not asked for.
        - ``groups``: What its groups are here. It needs a ``groupsClaim``.
        """
        return await self._call(
            types.IdentityProvider,
            "POST",
            "/v1/identity-providers",
            body=body_of({
                "name": name,
                "issuer": issuer,
                "clientId": client_id,
                "clientSecretRef": client_secret_ref,
                "scopes": scopes,
                "emailDomains": email_domains,
                "emailTrust": email_trust,
                "createsPeople": creates_people,
                "groupsClaim": groups_claim,
                "groups": groups,
            }),
            options=options,
        )

    def list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.IdentityProvider]:
        """List the tenant's identity providers.

        Access: admin on tenant.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.IdentityProvider,
            "/v1/identity-providers",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def get(self, identity_provider_id: str, *, options: CallOptions | None = None) -> types.IdentityProvider:
        """Read an identity provider.

        Access: admin on identity-provider in path. May also be refused with ``not-found``.
        """
        return await self._call(
            types.IdentityProvider,
            "GET",
            f"/v1/identity-providers/{segment(identity_provider_id)}",
            options=options,
        )

    async def update(
        self,
        identity_provider_id: str,
        *,
        name: str | Null | None = None,
        client_id: str | Null | None = None,
        client_secret_ref: inputs.SecretRefInput | types.SecretRef | Null | None = None,
        scopes: Sequence[str] | Null | None = None,
        email_domains: Sequence[str] | Null | None = None,
        email_trust: types.EmailTrust | Null | None = None,
        creates_people: bool | Null | None = None,
        groups_claim: str | Null | None = None,
        groups: Sequence[inputs.IdentityProviderGroupInput | types.IdentityProviderGroup] | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.IdentityProvider:
        """Change an identity provider: what is left out stays, a list replaces the one that stands.

        Access: admin on identity-provider in path. May also be refused with ``identity-providers-operator-managed``,
        ``not-found``, ``already-exists``, ``conflict``, ``secrets-unavailable``.

        - ``client_secret_ref``: Null: a public client.
        - ``groups_claim``: Null: groups are not asked for, and the memberships that they gave end.
        - ``groups``: A team that none of them stands for any more loses the members that they gave.
        """
        return await self._call(
            types.IdentityProvider,
            "PATCH",
            f"/v1/identity-providers/{segment(identity_provider_id)}",
            body=body_of({
                "name": name,
                "clientId": client_id,
                "clientSecretRef": client_secret_ref,
                "scopes": scopes,
                "emailDomains": email_domains,
                "emailTrust": email_trust,
                "createsPeople": creates_people,
                "groupsClaim": groups_claim,
                "groups": groups,
            }),
            options=options,
        )

    async def delete(self, identity_provider_id: str, *, options: CallOptions | None = None) -> None:
        """Delete an identity provider: its identities, the sessions it opened, and the memberships of its groups end.

        Access: admin on identity-provider in path. May also be refused with ``identity-providers-operator-managed``,
        ``not-found``.
        """
        await self._do("DELETE", f"/v1/identity-providers/{segment(identity_provider_id)}", options=options)

    async def check(
        self,
        identity_provider_id: str,
        *,
        options: CallOptions | None = None,
    ) -> types.IdentityProviderCheck:
        """Ask an identity provider all that a sign-in needs of it, and say of each step what was found.

        Access: admin on identity-provider in path. May also be refused with ``not-found``, ``secrets-unavailable``.
        """
        return await self._call(
            types.IdentityProviderCheck,
            "POST",
            f"/v1/identity-providers/{segment(identity_provider_id)}/check",
            options=options,
        )
