# Written by clients/generate from the API description.
"""The guardrails of a tenant and of its projects, in versions that never change. No agent takes them away."""

from __future__ import annotations

from collections.abc import Sequence

from .. import inputs, types
from .._options import CallOptions
from .._protocol import Null, body_of
from .._resource import Resource


class Policies(Resource):
    """The guardrails of a tenant and of its projects, in versions that never change. No agent takes them away."""

    def get(self, *, options: CallOptions | None = None) -> types.Policy:
        """Read the tenant's policy: its newest version.

        Access: read on tenant.
        """
        return self._call(types.Policy, "GET", "/v1/policies", options=options)

    def put(
        self,
        *,
        guardrails: Sequence[inputs.GuardrailInput | types.Guardrail],
        streaming: types.GuardrailStreaming | None = None,
        expected_version: int | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.Policy:
        """Put the tenant's policy: the next version, which judges from then on, also runs that are under way.

        Access: admin on tenant. May also be refused with ``conflict``.

        - ``guardrails``: Checks of what goes into runs and what comes out, in the order in which they judge. An empty
          list: none.
        - ``streaming``: When readers of a stream see text that a guardrail of the policy judges at ``output``. Left
          out: after the verdict.
        - ``expected_version``: The version that was read before, 0 if there was none: if another one is the newest,
          nothing changes and the answer is ``conflict``. Left out: whichever is the newest.
        """
        return self._call(
            types.Policy,
            "PUT",
            "/v1/policies",
            body=body_of({"guardrails": guardrails, "streaming": streaming, "expectedVersion": expected_version}),
            options=options,
        )
