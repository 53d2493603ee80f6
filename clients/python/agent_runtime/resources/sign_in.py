# Written by clients/generate from the API description.
"""How a person signs in with a browser, on the server's own pages: the answer's cookie carries a session."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._protocol import body_of
from .._resource import Resource


class SignIn(Resource):
    """How a person signs in with a browser, on the server's own pages: the answer's cookie carries a session."""

    def ways(self, *, tenant_id: str | None = None, options: CallOptions | None = None) -> types.SignInWays:
        """Read in which ways one may sign in with a browser, and at which address.

        Access: open: describes the service, holds no tenant's data.

        - ``tenant_id``: The tenant, where the server has several.
        """
        return self._call(types.SignInWays, "GET", "/v1/sign-in", query={"tenantId": tenant_id}, options=options)

    def by_token(self, *, token: str, options: CallOptions | None = None) -> None:
        """Sign in with a bearer token: the answer's cookie carries a session, which ends with the token.

        Access: what the body has to sign in with, from a page of this server. May also be refused with
        ``token-sign-in-off``, ``token-sign-in-not-allowed``, ``not-configured``.

        - ``token``: The token. It is kept nowhere.
        """
        self._do("POST", "/v1/sign-in/token", body=body_of({"token": token}), options=options)

    def by_enrolment(self, *, code: str, options: CallOptions | None = None) -> None:
        """Sign in with an enrolment code, which is taken: the answer's cookie carries a session.

        Access: what the body has to sign in with, from a page of this server. May also be refused with
        ``not-configured``.

        - ``code``: The code, as it was shown.
        """
        self._do("POST", "/v1/sign-in/enrolment", body=body_of({"code": code}), options=options)
