# Written by clients/generate from the API description.
"""The people of the tenant, their enrolment codes and sessions, and what the caller may do."""

from __future__ import annotations

from .. import types
from .._options import CallOptions
from .._protocol import Null, body_of
from .._resource import Resource


class Enrolments(Resource):
    """The people of the tenant, their enrolment codes and sessions, and what the caller may do."""

    def redeem(
        self,
        *,
        code: str,
        name: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.MintedToken:
        """Turn an enrolment code into the person's first key, which is shown once.

        Access: an enrolment code in the body.

        - ``code``: The code, as it was shown.
        - ``name``: What the key is to be called; ``first key``, if left out.
        """
        return self._call(
            types.MintedToken,
            "POST",
            "/v1/identity/enrolments",
            body=body_of({"code": code, "name": name}),
            options=options,
        )
