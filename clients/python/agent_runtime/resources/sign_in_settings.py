# Written by clients/generate from the API description.
"""Who may sign in with a token, and how long sessions last."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._protocol import Null, body_of
from .._resource import Resource


class SignInSettings(Resource):
    """Who may sign in with a token, and how long sessions last."""

    def get(self, *, options: CallOptions | None = None) -> types.SignInSettings:
        """Read who may sign in with a token, and how long sessions last.

        Access: admin on tenant.
        """
        return self._call(types.SignInSettings, "GET", "/v1/sign-in-settings", options=options)

    def set(
        self,
        *,
        token_sign_in: types.TokenSignInSetting,
        session_idle_minutes: int | Null | None = None,
        session_hours: int | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.SignInSettings:
        """Set who may sign in with a token, and how long sessions last: stricter than the server, or as it says.

        Access: admin on tenant. May also be refused with ``identity-providers-operator-managed``, ``conflict``.

        - ``token_sign_in``: It also ends the open sessions that came from tokens which it refuses. Anything narrower
          than before takes an admin of the tenant who has signed in through an identity provider within 24 hours.
        - ``session_idle_minutes``: After so many minutes without use a session ends, open ones as well: no more than
          the server's (``SVC_SESSION_IDLE_MINUTES``). Null: as the server says.
        - ``session_hours``: After so many hours a session ends, open ones as well: no more than the server's
          (``SVC_SESSION_HOURS``). Null: as the server says.
        """
        return self._call(
            types.SignInSettings,
            "PUT",
            "/v1/sign-in-settings",
            body=body_of({
                "tokenSignIn": token_sign_in,
                "sessionIdleMinutes": session_idle_minutes,
                "sessionHours": session_hours,
            }),
            options=options,
        )
