# Written by clients/generate from the API description.
"""A run is one turn of an agent. Start it, follow it while it goes on, read what came of it, cancel it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, overload

from .. import inputs, types
from .._following import MAX_SILENCE
from .._helpers import RunsHelpers
from .._options import CallOptions
from .._page import Page
from .._protocol import Null, body_of, segment
from .._resource import Resource
from .._stream import Stream
from .._transport import Transport


class RunsSteps(Resource):
    """Calls of ``runs.steps``."""

    def list(
        self,
        run_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.RunStep]:
        """List the steps of a run, with what they answered.

        Access: read on run in path. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.RunStep,
            f"/v1/runs/{segment(run_id)}/steps",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )


class RunsChecks(Resource):
    """Calls of ``runs.checks``."""

    def list(
        self,
        run_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.RunCheck]:
        """List the checks that guardrails made of a run, in the order of steps, attempts and checks; never the text.

        Access: read on run in path. May also be refused with ``not-found``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.RunCheck,
            f"/v1/runs/{segment(run_id)}/checks",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )


class Runs(RunsHelpers):
    """A run is one turn of an agent. Start it, follow it while it goes on, read what came of it, cancel it."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.steps = RunsSteps(transport)
        self.checks = RunsChecks(transport)

    @overload
    def create(
        self,
        *,
        agent_id: str,
        message: str,
        version: str | Null | None = None,
        conversation_id: str | Null | None = None,
        dry_run: bool | None = None,
        labels: Mapping[str, str] | None = None,
        overrides: inputs.RunOverridesInput | types.RunOverrides | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.StartedRun: ...
    @overload
    def create(
        self,
        *,
        flow_id: str,
        flow_version: str | Null | None = None,
        project_id: str | Null | None = None,
        input: Any = None,
        dry_run: bool | None = None,
        fixtures: Mapping[str, Any] | None = None,
        models: types.DryRunModels | None = None,
        labels: Mapping[str, str] | None = None,
        options: CallOptions | None = None,
    ) -> types.StartedRun: ...
    def create(
        self,
        *,
        agent_id: str | None = None,
        version: str | Null | None = None,
        conversation_id: str | Null | None = None,
        message: str | None = None,
        dry_run: bool | None = None,
        labels: Mapping[str, str] | None = None,
        overrides: inputs.RunOverridesInput | types.RunOverrides | Null | None = None,
        flow_id: str | None = None,
        flow_version: str | Null | None = None,
        project_id: str | Null | None = None,
        input: Any = None,
        fixtures: Mapping[str, Any] | None = None,
        models: types.DryRunModels | None = None,
        options: CallOptions | None = None,
    ) -> types.StartedRun:
        """Start a run: an agent's turn, or a flow.

        Access: write on agent in body, or write on flow in body. May also be refused with ``flow-invalid``,
        ``input-invalid``, ``override-not-allowed``, ``key-project-mismatch``, ``not-found``, ``project-archived``,
        ``agent-archived``, ``flow-archived``, ``conflict``, ``idempotency-in-flight``, ``idempotency-mismatch``. Is
        sent again after a cut under one idempotency key, so it happens once.

        - ``version``: The agent's version; left out: the conversation's own, else the live one, else the latest.
        - ``conversation_id``: The conversation to continue; left out: the turn stands alone.
        - ``message``: What the user says, 1 MiB at most.
        - ``dry_run``: Changes nothing: the model is asked, but a tool is called only if it says so (its ``dryRun``),
          and is told; of other calls the model is told that they were simulated.
        - ``labels``: Keys and values of the caller's own, by which lists find the run: 16 at most. Whoever may read the
          run reads them.
        - ``overrides``: What the run sets in place of its version's own; refused unless the version allows it. A retry
          keeps it; runs below it do not have it.
        - ``flow_id``: ``namespace.name``.
        - ``flow_version``: The flow's version; left out: the live one, else the latest.
        - ``project_id``: The flow's project, where several have a flow of this id.
        - ``input``: What the flow is given: it has to fit ``input.schema`` of its definition. Left out: an empty
          object.
        - ``fixtures``: Of a dry run: what steps answer, which are not performed then. By the JSON pointer of the step's
          task, as events have it in ``path``; that of a flow which this one runs has the flow's id before it, as in
          ``billing.pay/do/0/charge``. 500 at most, of 256 KiB of JSON together.
        - ``models``: Of a dry run: whether agents' turns ask their models. With ``skip`` no turn is begun: the step
          answers as one that is not performed.
        """
        return self._call(
            types.StartedRun,
            "POST",
            "/v1/runs",
            body=body_of({
                "agentId": agent_id,
                "version": version,
                "conversationId": conversation_id,
                "message": message,
                "dryRun": dry_run,
                "labels": labels,
                "overrides": overrides,
                "flowId": flow_id,
                "flowVersion": flow_version,
                "projectId": project_id,
                "input": input,
                "fixtures": fixtures,
                "models": models,
            }),
            is_idempotent=True,
            options=options,
        )

    def list(
        self,
        *,
        project_id: str | None = None,
        agent_id: str | None = None,
        conversation_id: str | None = None,
        status: types.Status | None = None,
        children: bool | None = None,
        origin: types.Origin | None = None,
        flow_id: str | None = None,
        root_run_id: str | None = None,
        parent_run_id: str | None = None,
        waiting_for: types.WaitingFor | None = None,
        via: types.Via | None = None,
        dry_run: bool | None = None,
        from_: datetime | str | None = None,
        to: datetime | str | None = None,
        request_id: str | None = None,
        label: Sequence[str] | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> Page[types.Run]:
        """List the runs that the caller may read.

        Access: readable runs. May also be refused with ``key-project-mismatch``.

        - ``project_id``: In this project.
        - ``agent_id``: Of this agent.
        - ``conversation_id``: In this conversation.
        - ``status``: With this status.
        - ``children``: True: child runs too. False: none of them. Left out: child runs too where ``rootRunId``,
          ``parentRunId``, ``conversationId`` or ``requestId`` is given, or ``origin`` is ``run``; otherwise none.
        - ``origin``: Begun by this.
        - ``flow_id``: Of this flow, in any version; ``agent.turn`` for turns of agents.
        - ``root_run_id``: Below this run, at any depth; the run itself is not among them.
        - ``parent_run_id``: Begun by this run.
        - ``waiting_for``: That wait for this.
        - ``via``: Turns of agents whose version was chosen so.
        - ``dry_run``: Dry runs, or those that are none.
        - ``from_``: Created then or later (RFC 3339).
        - ``to``: Created before then (RFC 3339).
        - ``request_id``: That this request created: the header ``x-request-id`` of its answer. Runs below that run are
          not among them.
        - ``label``: With this label, ``key:value``. Given several times: with all of them. The first one leads the
          search: name the rarest first.
        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.Run,
            "/v1/runs",
            query={
                "projectId": project_id,
                "agentId": agent_id,
                "conversationId": conversation_id,
                "status": status,
                "children": children,
                "origin": origin,
                "flowId": flow_id,
                "rootRunId": root_run_id,
                "parentRunId": parent_run_id,
                "waitingFor": waiting_for,
                "via": via,
                "dryRun": dry_run,
                "from": from_,
                "to": to,
                "requestId": request_id,
                "label": label,
                "cursor": cursor,
                "limit": limit,
                "order": order,
            },
            options=options,
        )

    def get(self, run_id: str, *, options: CallOptions | None = None) -> types.Run:
        """Read a run.

        Access: read on run in path. May also be refused with ``not-found``.
        """
        return self._call(types.Run, "GET", f"/v1/runs/{segment(run_id)}", options=options)

    def payload(self, run_id: str, *, options: CallOptions | None = None) -> types.Payload:
        """Read a run's input and output.

        Access: read on run in path. May also be refused with ``not-found``.
        """
        return self._call(types.Payload, "GET", f"/v1/runs/{segment(run_id)}/payload", options=options)

    def cancel(self, run_id: str, *, options: CallOptions | None = None) -> types.Run:
        """Ask a run to end; a finished run is answered as it is.

        Access: write on run in path. May also be refused with ``not-found``.
        """
        return self._call(types.Run, "POST", f"/v1/runs/{segment(run_id)}/cancel", options=options)

    def progress(
        self,
        run_id: str,
        *,
        after: int | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> types.Progress:
        """Read a run's progress: the run, and a page of its events.

        Access: read on run, or a public token of the run. May also be refused with ``not-found``.

        - ``after``: Events after this number; 0 begins with the first.
        - ``limit``: Events at most. A page of long events holds fewer.
        """
        return self._call(
            types.Progress,
            "GET",
            f"/v1/runs/{segment(run_id)}/progress",
            query={"after": after, "limit": limit},
            options=options,
        )

    def follow(
        self,
        run_id: str,
        *,
        after: int | None = None,
        max_silence: float = MAX_SILENCE,
        options: CallOptions | None = None,
    ) -> Stream[types.RunStreamEvent]:
        """Follow a run's progress as server-sent events.

        Access: read on run, or a public token of the run. May also be refused with ``not-found``.

        - ``after``: the number of the event after which it begins.
        - ``max_silence``: seconds without a byte, after which it connects again.
        """
        return self._stream(
            types.MAKERS["RunStreamEvent"],
            f"/v1/runs/{segment(run_id)}/progress/stream",
            after=after,
            max_silence=max_silence,
            options=options,
        )

    def state(self, run_id: str, *, options: CallOptions | None = None) -> types.RunState:
        """Read where a run stands: what it waits for, and of a flow the tasks under way with their data.

        Access: read on run in path. May also be refused with ``not-found``, ``newer-format``.
        """
        return self._call(types.RunState, "GET", f"/v1/runs/{segment(run_id)}/state", options=options)

    def retry(
        self,
        run_id: str,
        *,
        repeat_unknown_call: bool | None = None,
        options: CallOptions | None = None,
    ) -> types.StartedRun:
        """Take a failed run up again: a new run, which goes on after the last step that was done.

        Access: write on run in path. May also be refused with ``not-found``, ``project-archived``, ``agent-archived``,
        ``flow-archived``, ``outcome-unknown``, ``conflict``, ``idempotency-in-flight``, ``idempotency-mismatch``. Is
        sent again after a cut under one idempotency key, so it happens once.

        - ``repeat_unknown_call``: Have a tool that is not idempotent called again, although it may have done its work:
          the run ended during the call.
        """
        return self._call(
            types.StartedRun,
            "POST",
            f"/v1/runs/{segment(run_id)}/retry",
            body=body_of({"repeatUnknownCall": repeat_unknown_call}),
            is_idempotent=True,
            options=options,
        )
