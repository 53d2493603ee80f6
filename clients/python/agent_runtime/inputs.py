# Written by clients/generate from the API description.
"""Objects within bodies, as type checkers see them. Their fields have the names of the API. A record that the
server sent does as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from . import types


class SecretRefInput(TypedDict):
    """Which secret."""

    #: The environment that it belongs to.
    envName: str
    #: Its name in the environment.
    name: str


class IdentityProviderGroupInput(TypedDict):
    """A group of the provider, and what its members are here."""

    #: As the provider's claim names it.
    group: str
    #: The team.
    teamId: str
    #: The role in the team.
    role: types.TeamRole


class GuardrailConfigInput(TypedDict):
    """What a check looks for in particular. Each kind of check has its own fields."""

    #: ``pattern``: regular expressions that take linear time, as the crate regex of Rust reads them.
    patterns: NotRequired[Sequence[str] | None]
    #: ``pattern``: a text that matches none is found, whole. Otherwise what matches is.
    mustMatch: NotRequired[bool | None]
    #: ``pii``: which kinds; all if absent.
    kinds: NotRequired[Sequence[types.PersonalData] | None]
    #: ``links``: the hosts that links may have, ``example.com``, or ``*.example.com`` for those below it. None if
    #: absent.
    hosts: NotRequired[Sequence[str] | None]
    #: ``tool-arguments``: the name of the tool; every tool if absent.
    tool: NotRequired[str | None]
    #: ``tool-arguments``: the JSON Schema that arguments fit.
    schema: NotRequired[Mapping[str, Any] | None]


class ToolEscalationInput(TypedDict):
    """Who is asked if nobody has decided."""

    #: When, counted from the opening, as an ISO 8601 duration shorter than ``expiresAfter``.
    after: str
    #: The reviewer role that may decide then.
    requiredRole: str
    #: Whom the approval in its place is assigned to, by id or email address.
    assignedTo: NotRequired[str | None]


class ToolApprovalInput(TypedDict):
    """What each call of a tool asks a reviewer before it is made."""

    #: What a reviewer reads first. Webhooks are told it too, so it says nothing of a single call.
    title: NotRequired[str]
    #: The reviewer role that may decide.
    requiredRole: NotRequired[str]
    #: Whom each approval is assigned to, by id or email address: a person with the role. If the person is not active or
    #: lacks the role when it is opened, it is nobody's. Others with the role may decide all the same.
    assignedTo: NotRequired[str | None]
    #: How long the call waits, as an ISO 8601 duration such as ``PT8H``: 30 days at most. Nobody's silence approves it.
    expiresAfter: NotRequired[str]
    #: Who is asked in the place of the role if nobody has decided: one at most.
    escalation: NotRequired[Sequence[ToolEscalationInput | types.ToolEscalation]]
    #: What becomes of a call that is rejected or that nobody decides in time.
    onReject: NotRequired[types.OnReject]


class GuardrailInput(TypedDict):
    """A check of what goes into a run or comes out of it."""

    #: What it looks for.
    builtin: types.BuiltInGuardrail
    #: What it is called in records and by those who are told of a verdict; the name of what it looks for if absent.
    name: NotRequired[str | None]
    #: Where it stands, each place once.
    at: Sequence[types.GuardrailPoint]
    #: What becomes of what it finds.
    action: types.GuardrailAction
    #: What it looks for in particular.
    config: NotRequired[GuardrailConfigInput | types.GuardrailConfig]
    #: What becomes of what it blocks. If absent, the run fails at ``input`` and ``output``, and the model is told at
    #: the others.
    onBlock: NotRequired[types.GuardrailOnBlock | None]
    #: With ``onBlock`` ``answer``: the text.
    answer: NotRequired[str | None]
    #: With ``onBlock`` ``retry``: how often the model is asked again; once if absent.
    retries: NotRequired[int | None]
    #: What becomes of a text if the check itself fails.
    onError: NotRequired[types.GuardrailOnError]
    #: With ``action`` ``approve``: what a reviewer is asked. A tool that asks for an approval itself gets that one for
    #: both.
    approval: NotRequired[ToolApprovalInput | types.ToolApproval | None]


class ModelTimeoutsInput(TypedDict):
    """Time limits of a call, in milliseconds. What is absent is the service's own."""

    #: From the request to the first byte of the answer; 120000 by default. A server that says that it loads its model
    #: is waited for as long in all.
    firstByteMs: NotRequired[int | None]
    #: Between two bytes of the answer; 120000 by default. Comments and pings count.
    idleMs: NotRequired[int | None]
    #: The whole call; 600000 by default.
    callMs: NotRequired[int | None]


class ModelProviderHeaderInput(TypedDict):
    """A header of each request to a provider."""

    #: Its name.
    name: str
    #: Its value; or ``keyName`` says which it is.
    value: NotRequired[str | None]
    #: The name of one of the operator's keys (``SVC_MODEL_KEYS``), which is its value.
    keyName: NotRequired[str | None]


class ModelProviderOptionsInput(TypedDict):
    """How a provider's server is asked."""

    #: Time limits of a call.
    timeouts: NotRequired[ModelTimeoutsInput | types.ModelTimeouts]
    #: How often a call that may pass is tried in all; 4 by default.
    tries: NotRequired[int | None]
    #: Calls at once at most; further ones wait in order, without a thread and without being counted as slow. No bound
    #: by default.
    callsAtOnce: NotRequired[int | None]
    #: Headers of each request.
    headers: NotRequired[Sequence[ModelProviderHeaderInput | types.ModelProviderHeader]]
    #: The header that has the API key, such as Azure's ``api-key``, in place of ``Authorization: Bearer``.
    keyHeader: NotRequired[str | None]
    #: Sent as the query parameter ``api-version``, which Azure asks for.
    apiVersion: NotRequired[str | None]
    #: What the server does not take, or wants in another way.
    quirks: NotRequired[Sequence[types.ModelQuirk]]


class PricesInput(TypedDict):
    """What a model costs, in US dollars per million tokens. Cache tokens are part of the prompt,
    reasoning tokens part of the completion: a part without a price costs what its whole costs.
    """

    prompt: NotRequired[float | None]
    completion: NotRequired[float | None]
    cacheRead: NotRequired[float | None]
    cacheWrite: NotRequired[float | None]
    reasoning: NotRequired[float | None]


class ModelInput(TypedDict):
    """A model."""

    #: The provider's name of it.
    name: str
    #: How many tokens it takes, prompt and answer together. With it, the oldest exchanges of a conversation are left
    #: out of a prompt that would not fit.
    contextWindow: NotRequired[int | None]
    prices: NotRequired[PricesInput | types.Prices]


class NewToolAgentInput(TypedDict):
    """The agent that a tool is to call."""

    #: An agent of the tool's project.
    id: str
    #: Its version; left out: the live one, else the latest, each time that a run is taken up which calls the tool.
    version: NotRequired[str | None]


class NewToolFlowInput(TypedDict):
    """The flow that a tool is to call."""

    #: ``namespace.name`` of a flow of the tool's project.
    flowId: str
    #: Its version; left out: the live one, else the latest, each time that a run is taken up which calls the tool.
    version: NotRequired[str | None]


class ToolHeaderInput(TypedDict):
    """A header of each call whose value is a secret."""

    #: Its name: not one that the service sends itself, such as ``Content-Type``, and none that a proxy takes for
    #: itself.
    name: str
    #: The name of the secret, found under the environment that the server serves (``SVC_ENVIRONMENT``).
    secret: str
    #: What stands before the value, such as ``Bearer `` with its space.
    prefix: NotRequired[str | None]


class ModelParametersInput(TypedDict):
    """How a model is to answer. What is absent is left to the provider."""

    #: Sampling temperature.
    temperature: NotRequired[float | None]
    #: Nucleus sampling.
    topP: NotRequired[float | None]
    #: The longest answer, in tokens. Sent as ``max_tokens``, which most servers know, or as ``max_completion_tokens``
    #: to those that want it.
    maxTokens: NotRequired[int | None]
    #: Texts that end the answer.
    stop: NotRequired[Sequence[str]]
    #: A seed for repeatable sampling.
    seed: NotRequired[int | None]
    #: How much the model thinks before it answers: ``low``, ``medium`` or ``high``; some servers know others.
    reasoningEffort: NotRequired[str | None]
    #: Whether the model calls tools: ``auto``, ``none``, ``required``, or the name of the one that it calls.
    #: ``required`` and a name hold until the turn has called a tool; then the model may answer.
    toolChoice: NotRequired[str | None]
    #: Whether the model may call several tools at once.
    parallelToolCalls: NotRequired[bool | None]
    #: Above 0: the model repeats subjects less.
    presencePenalty: NotRequired[float | None]
    #: Above 0: the model repeats words less.
    frequencyPenalty: NotRequired[float | None]
    #: Further fields of the request, passed on as they are; a null takes a field out.
    extra: NotRequired[Mapping[str, Any]]


class LimitsInput(TypedDict):
    """The limits of an agent's version."""

    #: Steps of a turn at most, model and tool calls together.
    maxSteps: NotRequired[int]
    #: Milliseconds that a turn may take, waits included.
    turnTimeoutMs: NotRequired[int]
    #: Tokens that one model call may write; the provider's own limit if absent.
    maxOutputTokens: NotRequired[int | None]
    #: Whether the model is told of the calls of tools in the earlier turns of a conversation, and of their results.
    historyCalls: NotRequired[bool]


class RunLimitsInput(TypedDict):
    """Limits that a run sets, each in place of its version's."""

    #: Steps of the turn at most, model and tool calls together.
    maxSteps: NotRequired[int | None]
    #: Milliseconds that the turn may take, waits included.
    turnTimeoutMs: NotRequired[int | None]
    #: Tokens that one model call may write.
    maxOutputTokens: NotRequired[int | None]
    #: Whether the model is told of the calls of tools in the earlier turns of a conversation, and of their results.
    historyCalls: NotRequired[bool | None]


class RunOverridesInput(TypedDict):
    """What a run sets in place of its version's own. A field that is left out stays as the version has it, also of
    parameters and
    limits. The version's ``overrides`` says what a run may set: ``model`` stands for ``modelProviderId`` and ``model``.
    """

    #: The provider of the model. Left out: the version's.
    modelProviderId: NotRequired[str | None]
    #: One of the provider's models. Left out: the version's.
    model: NotRequired[str | None]
    parameters: NotRequired[ModelParametersInput | types.ModelParameters]
    limits: NotRequired[RunLimitsInput | types.RunLimits]


class WebhookFilterInput(TypedDict):
    """Which events of its kinds an endpoint takes. With a filter, dry runs are left out unless asked for."""

    #: Of ``run.finished``: runs of these flows alone, any version of them. It says nothing of other kinds.
    flowIds: NotRequired[Sequence[str] | None]
    #: Of this project alone.
    projectId: NotRequired[str | None]
    #: Of ``run.finished``: dry runs, too.
    includeDryRuns: NotRequired[bool | None]
