# Written by clients/generate from the API description.
"""Checks of what goes into a run and of what comes out, tried on a text."""

from __future__ import annotations

from collections.abc import Sequence

from .. import inputs, types
from .._options import CallOptions
from .._protocol import Null, body_of
from .._resource import Resource


class Guardrails(Resource):
    """Checks of what goes into a run and of what comes out, tried on a text."""

    def try_(
        self,
        *,
        project_id: str,
        point: types.GuardrailPoint,
        text: str,
        tool: str | Null | None = None,
        guardrails: Sequence[inputs.GuardrailInput | types.Guardrail] | None = None,
        with_policies: bool | None = None,
        options: CallOptions | None = None,
    ) -> types.TriedGuardrails:
        """Have guardrails judge a text: those of the policies that stand, then the ones given; nothing is kept.

        Access: write on project in body. May also be refused with ``key-project-mismatch``, ``not-found``.

        - ``project_id``: The project whose policy applies, after the tenant's.
        - ``point``: Where the text would stand.
        - ``text``: At most 1 MiB of UTF-8 without NUL; at ``tool.arguments`` JSON.
        - ``tool``: At ``tool.arguments`` and ``tool.result``: the tool.
        - ``guardrails``: Guardrails that judge after the policies', as those of an agent's version.
        - ``with_policies``: False: the policies that stand do not judge.
        """
        return self._call(
            types.TriedGuardrails,
            "POST",
            "/v1/guardrails/try",
            body=body_of({
                "projectId": project_id,
                "point": point,
                "text": text,
                "tool": tool,
                "guardrails": guardrails,
                "withPolicies": with_policies,
            }),
            options=options,
        )
