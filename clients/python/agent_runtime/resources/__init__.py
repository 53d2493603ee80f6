# Written by clients/generate from the API description.
"""The nouns of the clients. Each is loaded when it is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._transport import AsyncTransport, Transport
    from .agents import Agents
    from .approvals import Approvals
    from .async_agents import AsyncAgents
    from .async_approvals import AsyncApprovals
    from .async_audit import AsyncAudit
    from .async_changes import AsyncChanges
    from .async_conversations import AsyncConversations
    from .async_enrolments import AsyncEnrolments
    from .async_environments import AsyncEnvironments
    from .async_flows import AsyncFlows
    from .async_guardrails import AsyncGuardrails
    from .async_identity_providers import AsyncIdentityProviders
    from .async_inbox import AsyncInbox
    from .async_me import AsyncMe
    from .async_model_providers import AsyncModelProviders
    from .async_orgs import AsyncOrgs
    from .async_policies import AsyncPolicies
    from .async_projects import AsyncProjects
    from .async_reviewers import AsyncReviewers
    from .async_runs import AsyncRuns
    from .async_secret_uses import AsyncSecretUses
    from .async_secrets import AsyncSecrets
    from .async_service_accounts import AsyncServiceAccounts
    from .async_sign_in import AsyncSignIn
    from .async_sign_in_settings import AsyncSignInSettings
    from .async_teams import AsyncTeams
    from .async_tokens import AsyncTokens
    from .async_tools import AsyncTools
    from .async_usage import AsyncUsage
    from .async_users import AsyncUsers
    from .async_webhook_endpoints import AsyncWebhookEndpoints
    from .audit import Audit
    from .changes import Changes
    from .conversations import Conversations
    from .enrolments import Enrolments
    from .environments import Environments
    from .flows import Flows
    from .guardrails import Guardrails
    from .identity_providers import IdentityProviders
    from .inbox import Inbox
    from .me import Me
    from .model_providers import ModelProviders
    from .orgs import Orgs
    from .policies import Policies
    from .projects import Projects
    from .reviewers import Reviewers
    from .runs import Runs
    from .secret_uses import SecretUses
    from .secrets import Secrets
    from .service_accounts import ServiceAccounts
    from .sign_in import SignIn
    from .sign_in_settings import SignInSettings
    from .teams import Teams
    from .tokens import Tokens
    from .tools import Tools
    from .usage import Usage
    from .users import Users
    from .webhook_endpoints import WebhookEndpoints


class Nouns:
    """The nouns of ``AgentRuntime``."""

    _transport: Transport

    @cached_property
    def users(self) -> Users:
        """The people of the tenant, their enrolment codes and sessions, and what the caller may do."""
        from .users import Users

        return Users(self._transport)

    @cached_property
    def enrolments(self) -> Enrolments:
        """The people of the tenant, their enrolment codes and sessions, and what the caller may do."""
        from .enrolments import Enrolments

        return Enrolments(self._transport)

    @cached_property
    def sign_in(self) -> SignIn:
        """How a person signs in with a browser, on the server's own pages: the answer's cookie carries a session."""
        from .sign_in import SignIn

        return SignIn(self._transport)

    @cached_property
    def me(self) -> Me:
        """How a person ends the session of a browser."""
        from .me import Me

        return Me(self._transport)

    @cached_property
    def identity_providers(self) -> IdentityProviders:
        """OpenID Connect issuers by which people sign in, the email domains that each speaks for, and the teams of its
        groups.
        """
        from .identity_providers import IdentityProviders

        return IdentityProviders(self._transport)

    @cached_property
    def sign_in_settings(self) -> SignInSettings:
        """Who may sign in with a token, and how long sessions last."""
        from .sign_in_settings import SignInSettings

        return SignInSettings(self._transport)

    @cached_property
    def service_accounts(self) -> ServiceAccounts:
        """Accounts of programs, and their bearer tokens."""
        from .service_accounts import ServiceAccounts

        return ServiceAccounts(self._transport)

    @cached_property
    def tokens(self) -> Tokens:
        """The caller's own bearer tokens, and public run tokens for browsers."""
        from .tokens import Tokens

        return Tokens(self._transport)

    @cached_property
    def orgs(self) -> Orgs:
        """Groups of projects with admins of their own."""
        from .orgs import Orgs

        return Orgs(self._transport)

    @cached_property
    def reviewers(self) -> Reviewers:
        """Who may decide about approvals."""
        from .reviewers import Reviewers

        return Reviewers(self._transport)

    @cached_property
    def projects(self) -> Projects:
        """Projects hold agents, tools, conversations and runs. Who may do what in them, directly and through teams."""
        from .projects import Projects

        return Projects(self._transport)

    @cached_property
    def teams(self) -> Teams:
        """People and service accounts that get roles on projects together."""
        from .teams import Teams

        return Teams(self._transport)

    @cached_property
    def secrets(self) -> Secrets:
        """Values that model providers and webhooks use by name. They are never shown."""
        from .secrets import Secrets

        return Secrets(self._transport)

    @cached_property
    def secret_uses(self) -> SecretUses:
        """Where a secret may be sent, by name: to which HTTP servers, for which project."""
        from .secret_uses import SecretUses

        return SecretUses(self._transport)

    @cached_property
    def environments(self) -> Environments:
        """Environments and their variables, which flows read. They are no secrets."""
        from .environments import Environments

        return Environments(self._transport)

    @cached_property
    def policies(self) -> Policies:
        """The guardrails of a tenant and of its projects, in versions that never change. No agent takes them away."""
        from .policies import Policies

        return Policies(self._transport)

    @cached_property
    def guardrails(self) -> Guardrails:
        """Checks of what goes into a run and of what comes out, tried on a text."""
        from .guardrails import Guardrails

        return Guardrails(self._transport)

    @cached_property
    def model_providers(self) -> ModelProviders:
        """Servers of models that agents use, with their models and prices."""
        from .model_providers import ModelProviders

        return ModelProviders(self._transport)

    @cached_property
    def tools(self) -> Tools:
        """HTTP tools of a project, which its agents may call."""
        from .tools import Tools

        return Tools(self._transport)

    @cached_property
    def agents(self) -> Agents:
        """Agents of a project: what each is told, in versions that never change, and which version is live."""
        from .agents import Agents

        return Agents(self._transport)

    @cached_property
    def flows(self) -> Flows:
        """Flows of a project: what each does, step by step, in versions that never change, and which version is live.
        """
        from .flows import Flows

        return Flows(self._transport)

    @cached_property
    def conversations(self) -> Conversations:
        """Conversations with an agent: runs that know what was said before."""
        from .conversations import Conversations

        return Conversations(self._transport)

    @cached_property
    def runs(self) -> Runs:
        """A run is one turn of an agent. Start it, follow it while it goes on, read what came of it, cancel it."""
        from .runs import Runs

        return Runs(self._transport)

    @cached_property
    def usage(self) -> Usage:
        """What model calls used and cost, summed over days, projects, agents and models."""
        from .usage import Usage

        return Usage(self._transport)

    @cached_property
    def changes(self) -> Changes:
        """Hints that something changed, so that a page reads it again."""
        from .changes import Changes

        return Changes(self._transport)

    @cached_property
    def approvals(self) -> Approvals:
        """What runs ask reviewers, and what these decide."""
        from .approvals import Approvals

        return Approvals(self._transport)

    @cached_property
    def inbox(self) -> Inbox:
        """What waits for the caller."""
        from .inbox import Inbox

        return Inbox(self._transport)

    @cached_property
    def webhook_endpoints(self) -> WebhookEndpoints:
        """Receivers of events, and what became of each delivery."""
        from .webhook_endpoints import WebhookEndpoints

        return WebhookEndpoints(self._transport)

    @cached_property
    def audit(self) -> Audit:
        """The recorded access decisions."""
        from .audit import Audit

        return Audit(self._transport)


class AsyncNouns:
    """The nouns of ``AsyncAgentRuntime``."""

    _transport: AsyncTransport

    @cached_property
    def users(self) -> AsyncUsers:
        """The people of the tenant, their enrolment codes and sessions, and what the caller may do."""
        from .async_users import AsyncUsers

        return AsyncUsers(self._transport)

    @cached_property
    def enrolments(self) -> AsyncEnrolments:
        """The people of the tenant, their enrolment codes and sessions, and what the caller may do."""
        from .async_enrolments import AsyncEnrolments

        return AsyncEnrolments(self._transport)

    @cached_property
    def sign_in(self) -> AsyncSignIn:
        """How a person signs in with a browser, on the server's own pages: the answer's cookie carries a session."""
        from .async_sign_in import AsyncSignIn

        return AsyncSignIn(self._transport)

    @cached_property
    def me(self) -> AsyncMe:
        """How a person ends the session of a browser."""
        from .async_me import AsyncMe

        return AsyncMe(self._transport)

    @cached_property
    def identity_providers(self) -> AsyncIdentityProviders:
        """OpenID Connect issuers by which people sign in, the email domains that each speaks for, and the teams of its
        groups.
        """
        from .async_identity_providers import AsyncIdentityProviders

        return AsyncIdentityProviders(self._transport)

    @cached_property
    def sign_in_settings(self) -> AsyncSignInSettings:
        """Who may sign in with a token, and how long sessions last."""
        from .async_sign_in_settings import AsyncSignInSettings

        return AsyncSignInSettings(self._transport)

    @cached_property
    def service_accounts(self) -> AsyncServiceAccounts:
        """Accounts of programs, and their bearer tokens."""
        from .async_service_accounts import AsyncServiceAccounts

        return AsyncServiceAccounts(self._transport)

    @cached_property
    def tokens(self) -> AsyncTokens:
        """The caller's own bearer tokens, and public run tokens for browsers."""
        from .async_tokens import AsyncTokens

        return AsyncTokens(self._transport)

    @cached_property
    def orgs(self) -> AsyncOrgs:
        """Groups of projects with admins of their own."""
        from .async_orgs import AsyncOrgs

        return AsyncOrgs(self._transport)

    @cached_property
    def reviewers(self) -> AsyncReviewers:
        """Who may decide about approvals."""
        from .async_reviewers import AsyncReviewers

        return AsyncReviewers(self._transport)

    @cached_property
    def projects(self) -> AsyncProjects:
        """Projects hold agents, tools, conversations and runs. Who may do what in them, directly and through teams."""
        from .async_projects import AsyncProjects

        return AsyncProjects(self._transport)

    @cached_property
    def teams(self) -> AsyncTeams:
        """People and service accounts that get roles on projects together."""
        from .async_teams import AsyncTeams

        return AsyncTeams(self._transport)

    @cached_property
    def secrets(self) -> AsyncSecrets:
        """Values that model providers and webhooks use by name. They are never shown."""
        from .async_secrets import AsyncSecrets

        return AsyncSecrets(self._transport)

    @cached_property
    def secret_uses(self) -> AsyncSecretUses:
        """Where a secret may be sent, by name: to which HTTP servers, for which project."""
        from .async_secret_uses import AsyncSecretUses

        return AsyncSecretUses(self._transport)

    @cached_property
    def environments(self) -> AsyncEnvironments:
        """Environments and their variables, which flows read. They are no secrets."""
        from .async_environments import AsyncEnvironments

        return AsyncEnvironments(self._transport)

    @cached_property
    def policies(self) -> AsyncPolicies:
        """The guardrails of a tenant and of its projects, in versions that never change. No agent takes them away."""
        from .async_policies import AsyncPolicies

        return AsyncPolicies(self._transport)

    @cached_property
    def guardrails(self) -> AsyncGuardrails:
        """Checks of what goes into a run and of what comes out, tried on a text."""
        from .async_guardrails import AsyncGuardrails

        return AsyncGuardrails(self._transport)

    @cached_property
    def model_providers(self) -> AsyncModelProviders:
        """Servers of models that agents use, with their models and prices."""
        from .async_model_providers import AsyncModelProviders

        return AsyncModelProviders(self._transport)

    @cached_property
    def tools(self) -> AsyncTools:
        """HTTP tools of a project, which its agents may call."""
        from .async_tools import AsyncTools

        return AsyncTools(self._transport)

    @cached_property
    def agents(self) -> AsyncAgents:
        """Agents of a project: what each is told, in versions that never change, and which version is live."""
        from .async_agents import AsyncAgents

        return AsyncAgents(self._transport)

    @cached_property
    def flows(self) -> AsyncFlows:
        """Flows of a project: what each does, step by step, in versions that never change, and which version is live.
        """
        from .async_flows import AsyncFlows

        return AsyncFlows(self._transport)

    @cached_property
    def conversations(self) -> AsyncConversations:
        """Conversations with an agent: runs that know what was said before."""
        from .async_conversations import AsyncConversations

        return AsyncConversations(self._transport)

    @cached_property
    def runs(self) -> AsyncRuns:
        """A run is one turn of an agent. Start it, follow it while it goes on, read what came of it, cancel it."""
        from .async_runs import AsyncRuns

        return AsyncRuns(self._transport)

    @cached_property
    def usage(self) -> AsyncUsage:
        """What model calls used and cost, summed over days, projects, agents and models."""
        from .async_usage import AsyncUsage

        return AsyncUsage(self._transport)

    @cached_property
    def changes(self) -> AsyncChanges:
        """Hints that something changed, so that a page reads it again."""
        from .async_changes import AsyncChanges

        return AsyncChanges(self._transport)

    @cached_property
    def approvals(self) -> AsyncApprovals:
        """What runs ask reviewers, and what these decide."""
        from .async_approvals import AsyncApprovals

        return AsyncApprovals(self._transport)

    @cached_property
    def inbox(self) -> AsyncInbox:
        """What waits for the caller."""
        from .async_inbox import AsyncInbox

        return AsyncInbox(self._transport)

    @cached_property
    def webhook_endpoints(self) -> AsyncWebhookEndpoints:
        """Receivers of events, and what became of each delivery."""
        from .async_webhook_endpoints import AsyncWebhookEndpoints

        return AsyncWebhookEndpoints(self._transport)

    @cached_property
    def audit(self) -> AsyncAudit:
        """The recorded access decisions."""
        from .async_audit import AsyncAudit

        return AsyncAudit(self._transport)
