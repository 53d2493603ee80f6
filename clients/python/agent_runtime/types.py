# Written by clients/generate from the API description.
"""What the server sends, in the order of the API description.

Texts of a closed set are open here: a later server may send others. So is each union: what this client does
not know is a record of the class whose name begins with ``Other``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

from ._record import Record, fitting, union_of

#: A role in the tenant.
#: ``member``: Reads what belongs to the tenant as a whole.
#: ``admin``: Decides about everything in the tenant.
TenantRole: TypeAlias = Literal["member", "admin"] | str


class AddedPerson(Record):
    """A person who was added."""

    id: str
    #: As it was given. The seed user has none.
    email: str | None
    display_name: str
    tenant_role: TenantRole
    #: Who added the person. The seed user was added by nobody, and so was whom an identity provider added.
    created_by: str | None
    created_at: datetime
    deactivated_at: datetime | None
    enrolment: Enrolment


class Enrolment(Record):
    """A code that its person turns into a first key."""

    #: The code itself: shown here, and never again.
    code: str
    expires_at: datetime

#: Whether a user may do anything.
#: ``active``: They may.
#: ``deactivated``: They were deactivated.
UserStatus: TypeAlias = Literal["active", "deactivated"] | str

#: The direction of a list.
#: ``asc``: Oldest first.
#: ``desc``: Newest first.
Order: TypeAlias = Literal["asc", "desc"] | str


class PersonPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Person, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Person(Record):
    """A person."""

    id: str
    #: As it was given. The seed user has none.
    email: str | None
    display_name: str
    tenant_role: TenantRole
    #: Who added the person. The seed user was added by nobody, and so was whom an identity provider added.
    created_by: str | None
    created_at: datetime
    deactivated_at: datetime | None


class MintedToken(Record):
    """A bearer token that was minted."""

    id: str
    name: str
    #: The last four characters of the token.
    last_four: str
    #: The token came with the tenant.
    seed: bool
    created_at: datetime
    expires_at: datetime | None
    #: When it was last used: to the minute, and up to an hour old, since a further use within an hour is not written.
    last_used_at: datetime | None
    role: KeyRole
    capabilities: tuple[Capability, ...]
    #: The one project that the token is limited to.
    project_id: str | None
    #: The token itself: shown here, and never again.
    token: str

#: The role of a key.
#: ``member``: What its owner may as a member of the tenant, and by roles in orgs, teams and projects.
#: ``admin``: Whatever its owner may.
KeyRole: TypeAlias = Literal["member", "admin"] | str

#: A kind of write that a key takes part in only if it says so.
#: ``access:write``: Change who may do what.
#: ``env:write``: Change environments.
#: ``keys:write``: Mint keys, and revoke others than itself.
#: ``secrets:write``: Put and delete secrets.
Capability: TypeAlias = Literal["access:write", "env:write", "keys:write", "secrets:write"] | str


class SignInWays(Record):
    """The ways in."""

    #: The server's address as browsers see it, where it is set.
    public_url: str | None
    #: The tenant that the rest is about: the one that was asked for, or the only one. Null: there are several, and
    #: ``tenantId`` names one.
    tenant_id: str | None
    #: The identity providers by which one may sign in.
    providers: tuple[SignInProvider, ...]
    #: Who may sign in with a bearer token of their own.
    token_sign_in: TokenSignInSetting
    #: In development the console logs in by itself.
    development_login: bool
    #: Why nobody can sign in by this request's address; null if they can.
    problem: SignInProblem | None


class SignInProvider(Record):
    """An identity provider to sign in by."""

    id: str
    name: str

#: Who may sign in with a bearer token of their own.
#: ``on``: Everybody.
#: ``admins``: Tenant admins.
#: ``off``: Nobody.
TokenSignInSetting: TypeAlias = Literal["on", "admins", "off"] | str

#: Why nobody can sign in by this request's address.
#: ``not-configured``: The server does not know its own address (``SVC_PUBLIC_URL``).
#: ``other-address``: The server is to be opened at its own address.
SignInProblem: TypeAlias = Literal["not-configured", "other-address"] | str


class SignedOut(Record):
    """What is left to do for whoever signed out."""

    #: The page of the identity provider at which one signs out there, too. Null: the session came by none, or the
    #: provider has no such page, or is away.
    provider_sign_out_url: str | None


class Me(Record):
    """Who the caller is."""

    id: str
    tenant_id: str
    kind: PrincipalKind
    #: As it was given. The seed user and service accounts have none.
    email: str | None
    display_name: str
    tenant_role: TenantRole
    reviewer_roles: tuple[str, ...]
    #: The caller is in a team.
    in_team: bool
    credential: RequestCredential

#: What kind of principal somebody is.
#: ``user``: A person.
#: ``service-account``: A service account.
PrincipalKind: TypeAlias = Literal["user", "service-account"] | str


class RequestCredential(Record):
    """The credential of the request."""

    kind: CredentialKind
    id: str
    #: When it ends at the latest.
    expires_at: datetime | None
    #: What it may do at most, whatever its owner may.
    role: KeyRole
    capabilities: tuple[Capability, ...]
    #: The one project that it is limited to.
    project_id: str | None

#: What a request came with.
#: ``token``: A bearer token.
#: ``session``: The session of a browser.
CredentialKind: TypeAlias = Literal["token", "session"] | str


class SessionPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Session, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Session(Record):
    """A session."""

    id: str
    #: How the person signed in.
    method: Method
    #: It is the session of the request.
    current: bool
    #: The address from which the person signed in: behind a proxy, the proxy's.
    client_address: str
    #: What the browser called itself then.
    user_agent: str | None
    created_at: datetime
    #: When it was used last, to the minute.
    active_at: datetime
    #: When it ends at the latest.
    expires_at: datetime

#: How a person signed in.
#: ``token``: With a bearer token.
#: ``enrolment``: With an enrolment code.
#: ``development``: With the token that the server hands to the console in development.
#: ``provider``: Through an identity provider.
Method: TypeAlias = Literal["token", "enrolment", "development", "provider"] | str


class IdentityPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Identity, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Identity(Record):
    """Whom a person is at an identity provider."""

    id: str
    identity_provider_id: str
    #: What the provider is called.
    provider_name: str
    #: What the provider calls the person, for good.
    subject: str
    #: The email by which it was bound. It counts no more.
    email_then: str
    bound_at: datetime
    last_used_at: datetime


class SecretRef(Record):
    """Which secret."""

    #: The environment that it belongs to.
    env_name: str
    #: Its name in the environment.
    name: str

#: When a provider's email counts.
#: ``claim``: When the provider says that it verified it.
#: ``provider``: Always: at this provider nobody chooses an email of their own.
EmailTrust: TypeAlias = Literal["claim", "provider"] | str


class IdentityProviderGroup(Record):
    """A group of the provider, and what its members are here."""

    #: As the provider's claim names it.
    group: str
    #: The team.
    team_id: str
    #: The role in the team.
    role: TeamRole

#: A role in a team.
#: ``admin``: Decides who is in it.
#: ``member``: Has the roles that the team has.
TeamRole: TypeAlias = Literal["admin", "member"] | str


class IdentityProvider(Record):
    """An identity provider."""

    id: str
    #: Who keeps it.
    managed_by: IdentityProviderManager
    #: Whether people sign in by it. While the operator keeps providers in a file, those that the tenant registered do
    #: not serve.
    serves: bool
    name: str
    issuer: str
    client_id: str
    #: None: a public client, or the operator has it in a file.
    client_secret_ref: SecretRef | None
    scopes: tuple[str, ...]
    email_domains: tuple[str, ...]
    email_trust: EmailTrust
    creates_people: bool
    groups_claim: str | None
    groups: tuple[IdentityProviderGroup, ...]
    #: When somebody last signed in without the claim of groups, who has not signed in with it since: their teams stayed
    #: as they were. Let the provider put the claim into the ID token or userinfo, also where the person is in no group;
    #: some providers take a scope for it. Null: there is nobody, or the provider was changed here since.
    groups_absent_at: datetime | None
    #: The same where the provider left the groups out, because the person is in more than it names (500 count at most).
    #: Let it name only those that are registered here.
    groups_left_out_at: datetime | None
    #: What to register at the provider as the address to come back to. Null: the server has no address
    #: (``SVC_PUBLIC_URL``).
    callback_url: str | None
    created_by: str | None
    created_at: datetime
    updated_at: datetime

#: Who keeps an identity provider.
#: ``tenant``: The tenant's admins.
#: ``operator``: The operator, in a file.
IdentityProviderManager: TypeAlias = Literal["tenant", "operator"] | str


class IdentityProviderPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[IdentityProvider, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class IdentityProviderCheck(Record):
    """What a provider's check found."""

    #: Whether every step is well.
    ok: bool
    #: In the order of a sign-in.
    steps: tuple[IdentityProviderStep, ...]


class IdentityProviderStep(Record):
    """What a step found."""

    #: ``discovery``, ``issuer``, ``endpoints``, ``keys``, ``algorithms``, ``pkce``, ``clock`` or ``callback``.
    step: str
    #: Whether a sign-in passes it. Null: it could not be looked at, because one before it failed.
    ok: bool | None
    #: What was found, in a sentence.
    value: str
    #: What to do, in a sentence, if it is not well.
    what_to_do: str | None


class SignInSettings(Record):
    """How people of the tenant sign in."""

    #: What the tenant sets.
    token_sign_in: TokenSignInSetting
    #: What the tenant sets; null: as the server says.
    session_idle_minutes: int | None
    #: What the tenant sets; null: as the server says.
    session_hours: int | None
    #: What counts: the stricter of the tenant's and the server's.
    effective: EffectiveSignInSettings
    #: Who keeps identity providers and these settings.
    managed_by: IdentityProviderManager
    changed_by: str | None
    changed_at: datetime | None


class EffectiveSignInSettings(Record):
    """What counts."""

    token_sign_in: TokenSignInSetting
    session_idle_minutes: int
    session_hours: int


class Permissions(Record):
    """Who the caller is, and what each role allows."""

    tenant_id: str
    user_id: str
    kind: PrincipalKind
    key: KeyLimits
    tenant_role: TenantRole
    reviewer_roles: tuple[str, ...]
    #: The caller is in a team.
    in_team: bool
    #: That the server's license ends within 30 days, or has ended, and what to do. For tenant admins alone.
    license_warning: str | None
    #: Every role of the tenant, of orgs, of teams and of projects, and the caller's own reviewer roles.
    roles: tuple[RolePermissions, ...]


class KeyLimits(Record):
    """The key of the request."""

    id: str
    role: KeyRole
    capabilities: tuple[Capability, ...]
    #: The one project that the key is limited to.
    project_id: str | None


class RolePermissions(Record):
    """What a role allows."""

    #: What it is a role in: ``tenant``, ``org``, ``team`` or ``project``; of a reviewer role ``reviewer``.
    scope: str
    role: str
    #: The actions on each kind of object; what belongs to the tenant as a whole is of kind ``tenant``. A reviewer role
    #: allows actions on approvals that require it.
    allows: dict[str, tuple[AccessAction, ...]]

#: What one may do, each including the ones before it.
#: ``read``: See it.
#: ``write``: Work in it.
#: ``admin``: Decide about it.
AccessAction: TypeAlias = Literal["read", "write", "admin"] | str


class Grants(Record):
    """The roles of a user."""

    user_id: str
    kind: PrincipalKind
    #: Absent for a user who was deactivated. An admin is an admin of every project, those that are not listed included.
    tenant_role: TenantRole | None
    #: Of more than 1,000, the first.
    orgs: tuple[OrgGrant, ...]
    orgs_has_more: bool
    #: Of more than 1,000, the first.
    teams: tuple[TeamRoleGrant, ...]
    teams_has_more: bool
    #: A page of them, each with every way in.
    projects: tuple[ProjectGrant, ...]
    reviewer_roles: tuple[str, ...]
    #: More projects follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class OrgGrant(Record):
    """An org that the user is an admin of."""

    org_id: str
    org_name: str


class TeamRoleGrant(Record):
    """A team that the user is in."""

    team_id: str
    team_name: str
    role: TeamRole


class ProjectGrant(Record):
    """A project that the user has ways into."""

    project_id: str
    project_name: str
    #: The highest role that any way gives.
    role: Role
    via: tuple[Way, ...]

#: A role on a project, the highest first.
#: ``owner``: Also an admin. A person's role only.
#: ``admin``: Changes the project and who works in it.
#: ``editor``: Works in it.
#: ``viewer``: Reads it.
#: ``member``: What older rows hold. It grants what ``viewer`` grants, and is given no more.
Role: TypeAlias = Literal["owner", "admin", "editor", "viewer", "member"] | str


class OtherWay(Record):
    """One that this client does not know: a later server sent it."""

    #: Any other text. It has a type of its own, so that those that are known tell the rest apart.
    kind: Literal["of a later server"]


class ServiceAccount(Record):
    """A service account."""

    id: str
    name: str
    created_by: str | None
    created_at: datetime
    deactivated_at: datetime | None


class ServiceAccountPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[ServiceAccount, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class TokenPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Token, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Token(Record):
    """A bearer token, without its secret part."""

    id: str
    name: str
    #: The last four characters of the token.
    last_four: str
    #: The token came with the tenant.
    seed: bool
    created_at: datetime
    expires_at: datetime | None
    #: When it was last used: to the minute, and up to an hour old, since a further use within an hour is not written.
    last_used_at: datetime | None
    role: KeyRole
    capabilities: tuple[Capability, ...]
    #: The one project that the token is limited to.
    project_id: str | None


class MintedPublicToken(Record):
    """A public run token that was minted."""

    #: The token itself.
    token: str
    expires_at: datetime


class Org(Record):
    """An org."""

    id: str
    name: str
    created_by: str
    created_at: datetime
    updated_at: datetime


class OrgPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Org, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class OrgAdmin(Record):
    """An admin of an org."""

    org_id: str
    user_id: str
    display_name: str
    primary_email: str | None
    joined_at: datetime


class OrgAdminPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[OrgAdmin, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Project(Record):
    """A project."""

    id: str
    name: str
    created_by: str
    created_at: datetime
    updated_at: datetime
    #: Since when it is archived; null while it is not.
    archived_at: datetime | None


class Reviewer(Record):
    """A person with reviewer roles."""

    user_id: str
    display_name: str
    primary_email: str | None
    #: In the order of their texts.
    roles: tuple[str, ...]


class ReviewerPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Reviewer, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class ProjectPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Project, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Membership(Record):
    """Somebody's membership of a project."""

    project_id: str
    user_id: str
    kind: PrincipalKind
    display_name: str
    #: A person's email; for the project's admins alone.
    primary_email: str | None
    role: Role
    joined_at: datetime
    #: Since when the user can do nothing any more, whatever their role.
    deactivated_at: datetime | None


class MembershipPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Membership, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class TeamGrant(Record):
    """A team's role on a project."""

    project_id: str
    project_name: str
    team_id: str
    team_name: str
    role: Literal["admin", "editor", "viewer"] | str
    created_by: str
    created_at: datetime
    updated_at: datetime


class TeamGrantPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[TeamGrant, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class AccessEntryPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[AccessEntry, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class AccessEntry(Record):
    """Somebody with access to a project."""

    principal: Principal
    display_name: str
    #: A person's email; for the project's admins alone.
    primary_email: str | None
    #: The highest role that a way in gives.
    role: Role
    #: Every way in.
    via: tuple[Way, ...]


class Principal(Record):
    """Who it is."""

    kind: PrincipalKind
    id: str


class Team(Record):
    """A team."""

    id: str
    name: str
    slug: str
    description: str | None
    created_by: str
    created_at: datetime
    updated_at: datetime


class TeamPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Team, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class TeamMembership(Record):
    """Somebody's membership of a team."""

    team_id: str
    user_id: str
    kind: PrincipalKind
    display_name: str
    role: TeamRole
    joined_at: datetime
    #: The identity provider whose groups gave it, and take it away; absent: somebody gave it.
    identity_provider_id: str | None
    #: Since when the user can do nothing any more, whatever their role.
    deactivated_at: datetime | None


class TeamMembershipPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[TeamMembership, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Secret(Record):
    """A secret, without its value."""

    environment: str
    name: str
    #: The version that stands.
    version: int
    created_at: datetime
    updated_at: datetime
    #: Who put it first; null in env files, which do not say.
    created_by: str | None
    #: The versions that are kept, the newest first: the one that stands and the one before it.
    versions: tuple[SecretVersion, ...]


class SecretVersion(Record):
    """A version of a secret."""

    version: int
    created_at: datetime
    #: Until when it still signs webhooks, beside the version that stands.
    expires_at: datetime | None


class SecretPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Secret, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class SecretUse(Record):
    """A use of a secret."""

    id: str
    #: The secret's name, in every environment.
    name: str
    #: Where it may be sent, such as ``origin:https://api.example.com``.
    target: str
    #: For this project alone; null: for every project.
    project_id: str | None
    created_by: str
    created_at: datetime


class SecretUsePage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[SecretUse, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class EnvironmentPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Environment, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Environment(Record):
    """An environment: a variable, a secret or the server's setting names it."""

    name: str
    #: It is the one that the server serves (``SVC_ENVIRONMENT``): flows read its variables, and tools get its secrets.
    is_served: bool


class VariablePage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Variable, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Variable(Record):
    """A variable."""

    environment: str
    name: str
    value: str
    #: Who put it first.
    created_by: str
    created_at: datetime
    #: Who put it last.
    updated_by: str
    updated_at: datetime


class Policy(Record):
    """A policy, in its newest version."""

    #: Its number, from 1; 0: no version was put yet.
    version: int
    #: Its guardrails, in the order in which they judge.
    guardrails: tuple[Guardrail, ...]
    #: When readers of a stream see text that a guardrail of the policy judges at ``output``.
    streaming: GuardrailStreaming
    #: Who put it; null: nobody yet.
    created_by: str | None
    #: When it was put; null: not yet.
    created_at: datetime | None


class Guardrail(Record):
    """A check of what goes into a run or comes out of it."""

    #: What it looks for.
    builtin: BuiltInGuardrail
    #: What it is called in records and by those who are told of a verdict; the name of what it looks for if absent.
    name: str | None
    #: Where it stands, each place once.
    at: tuple[GuardrailPoint, ...]
    #: What becomes of what it finds.
    action: GuardrailAction
    #: What it looks for in particular.
    config: GuardrailConfig | None
    #: What becomes of what it blocks. If absent, the run fails at ``input`` and ``output``, and the model is told at
    #: the others.
    on_block: GuardrailOnBlock | None
    #: With ``onBlock`` ``answer``: the text.
    answer: str | None
    #: With ``onBlock`` ``retry``: how often the model is asked again; once if absent.
    retries: int | None
    #: What becomes of a text if the check itself fails.
    on_error: GuardrailOnError | None
    #: With ``action`` ``approve``: what a reviewer is asked. A tool that asks for an approval itself gets that one for
    #: both.
    approval: ToolApproval | None

#: What a check looks for.
#: ``pattern``: Texts that match patterns of the author, or match none.
#: ``pii``: Personal data that has a form of its own.
#: ``secrets``: Credentials, by their form.
#: ``tool-arguments``: Arguments of calls that do not fit a schema.
#: ``links``: Links to hosts that are not listed.
#: ``hidden-text``: Characters that a reader does not see and a model reads.
BuiltInGuardrail: TypeAlias = Literal["pattern", "pii", "secrets", "tool-arguments", "links", "hidden-text"] | str

#: Where a check stands.
#: ``input``: What the run is asked, before a model is.
#: ``tool.arguments``: The arguments of a call, before the tool gets them.
#: ``tool.result``: What a tool answers, before the model reads it.
#: ``output``: Each text that a model writes.
GuardrailPoint: TypeAlias = Literal["input", "tool.arguments", "tool.result", "output"] | str

#: What becomes of what a check finds.
#: ``block``: It goes no further: see ``onBlock``.
#: ``redact``: Its kind stands in its place, in brackets.
#: ``approve``: A reviewer decides on the call, at ``tool.arguments`` alone.
GuardrailAction: TypeAlias = Literal["block", "redact", "approve"] | str


class GuardrailConfig(Record):
    """What a check looks for in particular. Each kind of check has its own fields."""

    #: ``pattern``: regular expressions that take linear time, as the crate regex of Rust reads them.
    patterns: tuple[str, ...] | None
    #: ``pattern``: a text that matches none is found, whole. Otherwise what matches is.
    must_match: bool | None
    #: ``pii``: which kinds; all if absent.
    kinds: tuple[PersonalData, ...] | None
    #: ``links``: the hosts that links may have, ``example.com``, or ``*.example.com`` for those below it. None if
    #: absent.
    hosts: tuple[str, ...] | None
    #: ``tool-arguments``: the name of the tool; every tool if absent.
    tool: str | None
    #: ``tool-arguments``: the JSON Schema that arguments fit.
    schema: dict[str, Any] | None

#: Personal data that has a form of its own. Names and addresses have none: they take a model.
#: ``email``: An address of email.
#: ``phone``: A telephone number.
#: ``card``: The number of a payment card.
#: ``iban``: The number of a bank account.
#: ``ip``: An address of a computer.
PersonalData: TypeAlias = Literal["email", "phone", "card", "iban", "ip"] | str

#: What becomes of what a check blocks.
#: ``fail``: The run fails.
#: ``answer``: The run is completed with ``answer``, at ``input`` and ``output``.
#: ``tell``: The model is told, at ``tool.arguments`` and ``tool.result``.
#: ``retry``: The model is asked again, ``retries`` times at most, at ``output``; then the run fails.
GuardrailOnBlock: TypeAlias = Literal["fail", "answer", "tell", "retry"] | str

#: What becomes of a text if its check fails.
#: ``block``: It is blocked.
#: ``allow-unsafely``: It goes on unchecked.
GuardrailOnError: TypeAlias = Literal["block", "allow-unsafely"] | str


class ToolApproval(Record):
    """What each call of a tool asks a reviewer before it is made."""

    #: What a reviewer reads first. Webhooks are told it too, so it says nothing of a single call.
    title: str | None
    #: The reviewer role that may decide.
    required_role: str | None
    #: Whom each approval is assigned to, by id or email address: a person with the role. If the person is not active or
    #: lacks the role when it is opened, it is nobody's. Others with the role may decide all the same.
    assigned_to: str | None
    #: How long the call waits, as an ISO 8601 duration such as ``PT8H``: 30 days at most. Nobody's silence approves it.
    expires_after: str | None
    #: Who is asked in the place of the role if nobody has decided: one at most.
    escalation: tuple[ToolEscalation, ...] | None
    #: What becomes of a call that is rejected or that nobody decides in time.
    on_reject: OnReject | None


class ToolEscalation(Record):
    """Who is asked if nobody has decided."""

    #: When, counted from the opening, as an ISO 8601 duration shorter than ``expiresAfter``.
    after: str
    #: The reviewer role that may decide then.
    required_role: str
    #: Whom the approval in its place is assigned to, by id or email address.
    assigned_to: str | None

#: What becomes of a call that nobody approves.
#: ``tell``: The model is told, with the reviewer's comment, and the turn goes on.
#: ``fail``: The turn fails.
OnReject: TypeAlias = Literal["tell", "fail"] | str

#: When readers of a stream see text that a check at ``output`` applies to.
#: ``held``: After the verdict.
#: ``unchecked``: As the model writes it, before the verdict.
GuardrailStreaming: TypeAlias = Literal["held", "unchecked"] | str


class TriedGuardrails(Record):
    """What guardrails make of a text."""

    #: What the checks came to: a block counts more than an approval, and that more than a redaction.
    verdict: TriedVerdict
    #: The text that goes on; left out if it was blocked.
    text: str | None
    #: The guardrail that blocked it; left out if none did.
    blocked_by: str | None
    #: Each check that was made, in order. None is made after a block.
    checks: tuple[TriedCheck, ...]

#: What the checks of a text come to.
#: ``allow``: It goes on as it is.
#: ``block``: It goes no further.
#: ``redact``: It goes on with something replaced.
#: ``approve``: A reviewer decides on the call.
TriedVerdict: TypeAlias = Literal["allow", "block", "redact", "approve"] | str


class TriedCheck(Record):
    """A check that was made of a text."""

    #: The guardrail's name.
    name: str
    #: Whose it is; ``agent`` for one that the request gave.
    origin: GuardrailOrigin
    #: The version of the policy; null for a guardrail that the request gave.
    policy_version: int | None
    #: What judged, such as ``builtin:pii``.
    evaluator: str
    verdict: GuardrailVerdict
    #: What was found, in a word; ``failed`` if the check itself failed; null if nothing was found.
    code: str | None
    #: What was found, or why the check failed, in a sentence that never quotes the text; null if nothing was found.
    reason: str | None
    #: Of a check that failed: what becomes of the text. Otherwise null.
    on_error: GuardrailOnError | None
    #: Microseconds that it took.
    duration_us: int

#: Whose a check is.
#: ``tenant``: The tenant's.
#: ``project``: The project's.
#: ``agent``: Of the agent's version, or of the task of a flow.
GuardrailOrigin: TypeAlias = Literal["tenant", "project", "agent"] | str

#: What a check decided.
#: ``allow``: Nothing was found.
#: ``block``: What was found goes no further.
#: ``redact``: What was found was replaced.
#: ``approve``: A reviewer decides.
#: ``failed``: The check itself failed: see ``onError``.
GuardrailVerdict: TypeAlias = Literal["allow", "block", "redact", "approve", "failed"] | str


class ModelProviderOptions(Record):
    """How a provider's server is asked."""

    #: Time limits of a call.
    timeouts: ModelTimeouts | None
    #: How often a call that may pass is tried in all; 4 by default.
    tries: int | None
    #: Calls at once at most; further ones wait in order, without a thread and without being counted as slow. No bound
    #: by default.
    calls_at_once: int | None
    #: Headers of each request.
    headers: tuple[ModelProviderHeader, ...] | None
    #: The header that has the API key, such as Azure's ``api-key``, in place of ``Authorization: Bearer``.
    key_header: str | None
    #: Sent as the query parameter ``api-version``, which Azure asks for.
    api_version: str | None
    #: What the server does not take, or wants in another way.
    quirks: tuple[ModelQuirk, ...] | None


class ModelTimeouts(Record):
    """Time limits of a call, in milliseconds. What is absent is the service's own."""

    #: From the request to the first byte of the answer; 120000 by default. A server that says that it loads its model
    #: is waited for as long in all.
    first_byte_ms: int | None
    #: Between two bytes of the answer; 120000 by default. Comments and pings count.
    idle_ms: int | None
    #: The whole call; 600000 by default.
    call_ms: int | None


class ModelProviderHeader(Record):
    """A header of each request to a provider."""

    #: Its name.
    name: str
    #: Its value; or ``keyName`` says which it is.
    value: str | None
    #: The name of one of the operator's keys (``SVC_MODEL_KEYS``), which is its value.
    key_name: str | None

#: What a server does not take, or wants in another way. The service finds out most of them by itself, by a call that is
#: refused.
#: ``no-stream-options``: It refuses ``stream_options``.
#: ``no-streaming``: It does not stream.
#: ``no-parallel-tool-calls``: It refuses ``parallel_tool_calls``.
#: ``no-tool-choice``: It refuses ``tool_choice``.
#: ``no-strict``: It refuses ``strict``.
#: ``no-null-content``: It refuses a message whose ``content`` is null.
#: ``no-system-role``: It has no system role: the instructions stand before the first message of the user.
#: ``no-json-schema``: It refuses ``response_format`` of type ``json_schema``: it is asked for ``json_object``.
#: ``no-response-format``: It refuses every ``response_format``: it is asked in words.
#: ``max-completion-tokens``: It takes ``max_completion_tokens`` in place of ``max_tokens``.
#: ``no-temperature``: It takes its own default of ``temperature`` alone.
#: ``no-top-p``: It refuses ``top_p``.
#: ``no-penalties``: It refuses ``presence_penalty`` or ``frequency_penalty``.
#: ``no-seed``: It refuses ``seed``.
#: ``no-reasoning-effort``: It refuses ``reasoning_effort``.
#: ``no-kept``: It refuses fields of its own messages that it is handed back, such as its reasoning.
ModelQuirk: TypeAlias = (
    Literal[
        "no-stream-options",
        "no-streaming",
        "no-parallel-tool-calls",
        "no-tool-choice",
        "no-strict",
        "no-null-content",
        "no-system-role",
        "no-json-schema",
        "no-response-format",
        "max-completion-tokens",
        "no-temperature",
        "no-top-p",
        "no-penalties",
        "no-seed",
        "no-reasoning-effort",
        "no-kept",
    ]
    | str
)


class Model(Record):
    """A model."""

    #: The provider's name of it.
    name: str
    #: How many tokens it takes, prompt and answer together. With it, the oldest exchanges of a conversation are left
    #: out of a prompt that would not fit.
    context_window: int | None
    prices: Prices | None


class Prices(Record):
    """What a model costs, in US dollars per million tokens. Cache tokens are part of the prompt,
    reasoning tokens part of the completion: a part without a price costs what its whole costs.
    """

    prompt: float | None
    completion: float | None
    cache_read: float | None
    cache_write: float | None
    reasoning: float | None


class ModelProvider(Record):
    """A model provider."""

    id: str
    name: str
    base_url: str
    api_key_name: str | None
    api_key_secret_ref: SecretRef | None
    #: How it is asked.
    server_options: ModelProviderOptions
    #: By name.
    models: tuple[Model, ...]
    created_by: str
    created_at: datetime
    updated_at: datetime
    #: Its newest calls, where they failed: none has gone well since. For tenant admins alone, where a provider is read;
    #: of the last 24 hours, and of the newest 500 calls of the tenant.
    failing: FailingCalls | None


class FailingCalls(Record):
    """Calls of a model provider that failed, with none that went well since."""

    #: How many.
    calls: int
    #: When the first of them had failed.
    first_at: datetime
    #: When the last of them had.
    last_at: datetime
    #: Why the last one failed; null if it was erased.
    failure: str | None


class ModelProviderPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[ModelProvider, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class ModelProviderCheck(Record):
    """What a provider's check found."""

    #: Whether the model answers. The other steps say which agents it can serve.
    ok: bool
    #: The model that was asked.
    model: str
    #: The models that the server lists, 500 at most; none where it lists none.
    listed: tuple[str, ...]
    #: In the order in which they were looked at.
    steps: tuple[ModelProviderStep, ...]


class ModelProviderStep(Record):
    """What a step found."""

    #: ``models``, ``answer``, ``streaming``, ``usage``, ``tools`` or ``outputSchema``.
    step: str
    #: Whether it is as an agent needs it. Null: it could not be looked at.
    ok: bool | None
    #: What was found, in a sentence.
    value: str
    #: What to do, in a sentence, if it is not well.
    what_to_do: str | None

#: What a dry run does with a call of an HTTP server.
#: ``call``: Makes it: it says that the run is dry, and the tool is to change nothing.
#: ``simulate``: Does not make it. An agent's model is told so; a flow goes by a fixture or its definition.
ToolDryRun: TypeAlias = Literal["call", "simulate"] | str


class ToolHeader(Record):
    """A header of each call whose value is a secret."""

    #: Its name: not one that the service sends itself, such as ``Content-Type``, and none that a proxy takes for
    #: itself.
    name: str
    #: The name of the secret, found under the environment that the server serves (``SVC_ENVIRONMENT``).
    secret: str
    #: What stands before the value, such as ``Bearer `` with its space.
    prefix: str | None


class Tool(Record):
    """A tool."""

    id: str
    project_id: str
    name: str
    description: str
    #: What the model is told to fit its arguments to.
    arguments_schema: dict[str, Any]
    #: What its calls go to.
    target: TargetKind
    #: Of an HTTP server, else null.
    url: str | None
    #: Of an HTTP server, else null.
    timeout_ms: int | None
    #: Of an HTTP server; false of others, whose calls are begun once.
    idempotent: bool
    #: Of an HTTP server, else null: the runs that others begin are dry themselves.
    dry_run: ToolDryRun | None
    #: Of an agent, else null.
    agent: ToolAgent | None
    #: Of a flow, else null.
    flow: ToolFlow | None
    headers: tuple[ToolHeader, ...]
    signing_secret: str | None
    #: What each call asks a reviewer before it is made; null: nothing.
    approval: ToolApproval | None
    created_by: str
    created_at: datetime

#: What calls of a tool go to, by its name. What follows from it is decided in [``Target``](super::turns::Target), and
#: in matches that name each.
#: ``http``: An HTTP server.
#: ``agent``: An agent: a call is a turn in a run below the caller's.
#: ``flow``: A flow: a call is a run below the caller's.
TargetKind: TypeAlias = Literal["http", "agent", "flow"] | str


class ToolAgent(Record):
    """The agent that a tool calls."""

    id: str
    #: Null: the live one, else the latest.
    version: str | None


class ToolFlow(Record):
    """The flow that a tool calls."""

    flow_id: str
    #: Null: the live one, else the latest.
    version: str | None


class ToolPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Tool, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Agent(Record):
    """An agent."""

    id: str
    project_id: str
    name: str
    description: str
    #: The highest version; a release is above every pre-release. Null until one is made.
    latest_version: str | None
    #: The version that was promoted for the project; null while none is.
    live_version: str | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    #: Since when the agent is archived; null while it is not. Its project may be archived, too.
    archived_at: datetime | None


class AgentPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Agent, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class ModelParameters(Record):
    """How a model is to answer. What is absent is left to the provider."""

    #: Sampling temperature.
    temperature: float | None
    #: Nucleus sampling.
    top_p: float | None
    #: The longest answer, in tokens. Sent as ``max_tokens``, which most servers know, or as ``max_completion_tokens``
    #: to those that want it.
    max_tokens: int | None
    #: Texts that end the answer.
    stop: tuple[str, ...] | None
    #: A seed for repeatable sampling.
    seed: int | None
    #: How much the model thinks before it answers: ``low``, ``medium`` or ``high``; some servers know others.
    reasoning_effort: str | None
    #: Whether the model calls tools: ``auto``, ``none``, ``required``, or the name of the one that it calls.
    #: ``required`` and a name hold until the turn has called a tool; then the model may answer.
    tool_choice: str | None
    #: Whether the model may call several tools at once.
    parallel_tool_calls: bool | None
    #: Above 0: the model repeats subjects less.
    presence_penalty: float | None
    #: Above 0: the model repeats words less.
    frequency_penalty: float | None
    #: Further fields of the request, passed on as they are; a null takes a field out.
    extra: dict[str, Any] | None


class Limits(Record):
    """The limits of an agent's version."""

    #: Steps of a turn at most, model and tool calls together.
    max_steps: int | None
    #: Milliseconds that a turn may take, waits included.
    turn_timeout_ms: int | None
    #: Tokens that one model call may write; the provider's own limit if absent.
    max_output_tokens: int | None
    #: Whether the model is told of the calls of tools in the earlier turns of a conversation, and of their results.
    history_calls: bool | None

#: What a version may let a run set in place of its own.
#: ``model``: The model and its provider.
#: ``parameters``: Parameters for the model.
#: ``limits``: Limits of a turn.
Override: TypeAlias = Literal["model", "parameters", "limits"] | str


class AgentVersion(Record):
    """A version of an agent."""

    agent_id: str
    version: str
    instructions: str
    model_provider_id: str
    model: str
    parameters: ModelParameters
    tool_ids: tuple[str, ...]
    limits: Limits
    #: The JSON Schema that the answer of a turn fits; null: an answer is text.
    output_schema: dict[str, Any] | None
    #: What a run may set in place of the version's own.
    overrides: tuple[Override, ...]
    #: The version's own guardrails, which judge after those of the tenant's and the project's policies.
    guardrails: tuple[Guardrail, ...]
    #: When readers of a stream see text that a guardrail of the version judges at ``output``.
    streaming: GuardrailStreaming
    created_by: str
    created_at: datetime


class ListedAgentVersionPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[ListedAgentVersion, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class ListedAgentVersion(Record):
    """A version in a list: read it for what it says."""

    agent_id: str
    version: str
    model_provider_id: str
    model: str
    created_by: str
    created_at: datetime


class CheckedFlow(Record):
    """What was found in a definition."""

    #: It has no faults.
    valid: bool
    #: Null where a fault hides it.
    flow_id: str | None
    #: Null where a fault hides it.
    version: str | None
    #: What is wrong, at most 20.
    faults: tuple[FlowFault, ...]
    #: What is probably not meant, at most 20.
    warnings: tuple[FlowFault, ...]
    #: Null where a fault hides it.
    graph: FlowNode | None


class FlowFault(Record):
    """What is wrong with a definition, or probably not meant."""

    #: Where in the definition, a JSON path: ``$.do[2].small.switch[0].yes.then``.
    path: str
    #: What kind of fault, such as ``unknown-field``.
    code: str
    #: One sentence.
    message: str
    #: Which characters of the text at ``path`` are wrong.
    span: FlowFaultSpan | None
    #: What to write instead.
    hint: str | None


class FlowFaultSpan(Record):
    """A part of a text, in Unicode code points."""

    #: The first one, from 0.
    start: int
    #: The first one after it.
    end: int


class FlowNode(Record):
    """A flow, a list of tasks, or a task."""

    #: Its place in the definition, a JSON pointer, such as ``/do/2/small``. A run's events and steps have the same
    #: path.
    path: str
    #: The name of the task; of the flow its id; of a list the field that has it.
    name: str
    #: What it is.
    type: FlowNodeType
    #: The tool, the agent or the flow that it calls by name, the title of the approval.
    target: str | None
    #: What stands in it. The first one is where it begins, except in a ``fork``, whose branches begin together.
    children: tuple[FlowNode, ...]
    #: What leads from one of the children to another, in order.
    edges: tuple[FlowEdge, ...]

#: What a node is.
#: ``flow``: The whole flow.
#: ``list``: A list of a ``try``: what is tried, or what handles an error.
#: ``do``: A list of tasks.
#: ``set``: Answers a value.
#: ``switch``: Chooses what follows.
#: ``for``: A list for each item.
#: ``fork``: Branches beside each other.
#: ``try``: A list whose errors are handled.
#: ``raise``: Raises an error.
#: ``wait``: Waits.
#: ``http``: An HTTP request.
#: ``agent``: A turn of an agent.
#: ``tool``: A call of a tool.
#: ``approval``: A person's decision.
#: ``guardrail``: Guardrails judge a text.
#: ``run``: Another flow.
FlowNodeType: TypeAlias = (
    Literal[
        "flow",
        "list",
        "do",
        "set",
        "switch",
        "for",
        "fork",
        "try",
        "raise",
        "wait",
        "http",
        "agent",
        "tool",
        "approval",
        "guardrail",
        "run",
    ]
    | str
)


class FlowEdge(Record):
    """What leads from a node to one beside it, or out of the list."""

    #: The name of the node from which it leads.
    from_: str
    #: The name of the node to which it leads; ``exit``: out of the list; ``end``: to the end of the run.
    to: str
    #: The case of a ``switch`` that leads there; ``catch``: after a handled error; ``skipped``: if the task's ``if`` is
    #: false.
    label: str | None


class RegisteredFlow(Record):
    """A flow that was registered."""

    id: str
    project_id: str
    #: ``namespace.name`` of its definitions; unique in the project.
    flow_id: str
    #: Begins as the title of the first definition, cut after 200 characters.
    title: str
    #: Begins as the summary of the first definition.
    description: str
    #: The highest version; a release is above every pre-release.
    latest_version: str | None
    #: The version that was promoted for the project; null while none is.
    live_version: str | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    #: Since when the flow is archived; null while it is not. Its project may be archived, too.
    archived_at: datetime | None
    #: What in its definition is probably not meant, at most 20.
    warnings: tuple[FlowFault, ...]


class FlowPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Flow, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Flow(Record):
    """A flow."""

    id: str
    project_id: str
    #: ``namespace.name`` of its definitions; unique in the project.
    flow_id: str
    #: Begins as the title of the first definition, cut after 200 characters.
    title: str
    #: Begins as the summary of the first definition.
    description: str
    #: The highest version; a release is above every pre-release.
    latest_version: str | None
    #: The version that was promoted for the project; null while none is.
    live_version: str | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    #: Since when the flow is archived; null while it is not. Its project may be archived, too.
    archived_at: datetime | None


class MadeFlowVersion(Record):
    """A version of a flow that was made."""

    flow_id: str
    version: str
    #: As its author wrote it.
    definition: dict[str, Any]
    #: SHA-256 of the definition in hexadecimal digits, whatever the order of its keys.
    digest: str
    created_by: str
    created_at: datetime
    #: What in its definition is probably not meant, at most 20.
    warnings: tuple[FlowFault, ...]


class ListedFlowVersionPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[ListedFlowVersion, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class ListedFlowVersion(Record):
    """A version in a list: read it for what it says."""

    version: str
    created_by: str
    created_at: datetime


class FlowVersion(Record):
    """A version of a flow."""

    flow_id: str
    version: str
    #: As its author wrote it.
    definition: dict[str, Any]
    #: SHA-256 of the definition in hexadecimal digits, whatever the order of its keys.
    digest: str
    created_by: str
    created_at: datetime


class Conversation(Record):
    """A conversation."""

    id: str
    project_id: str
    agent_id: str
    #: The version that its turns run, if it was begun with one.
    version: str | None
    title: str
    #: The turn that is under way: there is one at a time.
    active_run_id: str | None
    created_by: str
    created_at: datetime
    #: When it was asked to be erased; null unless it was. No run starts in it since.
    erasure_requested_at: datetime | None
    #: When all of it was erased; null until then.
    erased_at: datetime | None
    #: True if its newest message is an answer that was cut at its maximum length; left out otherwise. In a list alone.
    answer_cut: bool | None


class ConversationPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Conversation, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class ConversationMessagePage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[ConversationMessage, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class ConversationMessage(Record):
    """A message of a conversation."""

    #: Its number in the conversation, from 1.
    position: int
    #: ``user`` or ``assistant``.
    role: str
    content: str
    #: The turn in which it was said.
    run_id: str
    created_at: datetime


class RunOverrides(Record):
    """What a run sets in place of its version's own. A field that is left out stays as the version has it, also of
    parameters and
    limits. The version's ``overrides`` says what a run may set: ``model`` stands for ``modelProviderId`` and ``model``.
    """

    #: The provider of the model. Left out: the version's.
    model_provider_id: str | None
    #: One of the provider's models. Left out: the version's.
    model: str | None
    parameters: ModelParameters | None
    limits: RunLimits | None


class RunLimits(Record):
    """Limits that a run sets, each in place of its version's."""

    #: Steps of the turn at most, model and tool calls together.
    max_steps: int | None
    #: Milliseconds that the turn may take, waits included.
    turn_timeout_ms: int | None
    #: Tokens that one model call may write.
    max_output_tokens: int | None
    #: Whether the model is told of the calls of tools in the earlier turns of a conversation, and of their results.
    history_calls: bool | None

#: Whether a dry run asks models.
#: ``call``: It does.
#: ``skip``: It does not: agents' turns are not begun.
DryRunModels: TypeAlias = Literal["call", "skip"] | str


class StartedRun(Record):
    """A run that was started."""

    run: Run
    #: Lets a browser follow the run; null where public run tokens are off.
    public_token: MintedPublicToken | None


class Run(Record):
    """A run."""

    #: The run.
    id: str
    #: Its project.
    project_id: str
    #: ``agent.turn`` for an agent's turn.
    flow_id: str
    #: The version of the flow.
    flow_version: str
    #: Where it stands.
    status: Status
    #: As the caller said.
    dry_run: bool
    #: Why it failed; null unless it did. In a webhook event and in a list it names the task, the status and the error's
    #: title, and quotes no data of the run; the run itself has the whole message.
    failure_message: str | None
    #: When it was created.
    created_at: datetime
    #: When it ended; null until it has.
    completed_at: datetime | None
    #: What its model calls used.
    usage: Usage | None
    #: Only on an agent's turn.
    agent: RunAgent | None
    started_at: datetime | None
    #: Who began it: an app, the command line, or another run.
    origin: Origin
    #: The run that began it; left out of a run that an app or the command line began.
    parent_run_id: str | None
    #: The number of its child runs, without those below them. A retry counts those that it takes over. In a list alone.
    child_count: int | None
    #: Which branch of a fork, or iteration of a parallel loop, of its parent it is; left out of any other run. In a
    #: list alone.
    branch: RunBranch | None
    #: The failed run that it takes up.
    retry_of: str | None
    created_by: str
    #: What it waits for; only while it waits.
    waiting_for: WaitingFor | None
    #: As the caller gave them at the start.
    labels: dict[str, str]
    #: What it sets in place of its agent's version; left out where it sets nothing, and once its payload was erased.
    #: Where one run is read, but not with its public token.
    overrides: RunOverrides | None
    #: Somebody asked it to end.
    cancel_requested: bool
    #: The number of its newest event.
    last_seq: int
    #: When what it was given, said and answered was erased; only then.
    payload_erased_at: datetime | None

#: Where a run stands. The last three are finished.
#: ``queued``: Nobody has taken it yet.
#: ``running``: Somebody carries it on, or did until a crash.
#: ``waiting``: It will be taken up again at a time that is set.
#: ``completed``: Finished with an output.
#: ``failed``: Finished with a failure message.
#: ``cancelled``: Finished because somebody asked.
Status: TypeAlias = Literal["queued", "running", "waiting", "completed", "failed", "cancelled"] | str


class Usage(Record):
    """What a run's model calls used."""

    #: Model calls, failed and lost ones included.
    calls: int
    #: US dollars; a call without a price counts as 0.
    cost_usd: float
    #: Tokens by kind.
    tokens: Tokens


class Tokens(Record):
    """Tokens by kind. Cache tokens are part of ``prompt``, reasoning tokens part of ``completion``."""

    #: What the model read.
    prompt: int
    #: What it wrote.
    completion: int
    #: Of the prompt: read from a cache.
    cache_read: int
    #: Of the prompt: written to a cache.
    cache_write: int
    #: Of the completion: reasoning.
    reasoning: int


class RunAgent(Record):
    """The agent of a turn."""

    #: The agent.
    id: str
    #: The version that runs.
    version: str
    #: The conversation that the turn belongs to.
    conversation_id: str | None
    #: How the version was chosen.
    via: Via

#: How a turn's version was chosen.
#: ``latest``: No version is live for the run's scope.
#: ``live``: The version live for its scope.
#: ``explicit``: The caller named it.
#: ``conversation``: The conversation's own.
Via: TypeAlias = Literal["latest", "live", "explicit", "conversation"] | str

#: Who began a run.
#: ``app``: An app, through the API.
#: ``command-line``: A person, through the command line.
#: ``run``: Another run.
Origin: TypeAlias = Literal["app", "command-line", "run"] | str


class RunBranch(Record):
    """A branch of a fork, or an iteration of a parallel loop."""

    #: The task of the flow that has the branches or iterations.
    path: str
    #: Which of them, from 0.
    index: int

#: What a run waits for.
#: ``retry``: Another attempt of a step that failed.
#: ``timer``: A time that its program named.
#: ``approval``: A decision of a reviewer.
#: ``children``: The end of a child run.
#: ``model``: A call that its model provider takes: others make as many as it takes at once.
WaitingFor: TypeAlias = Literal["retry", "timer", "approval", "children", "model"] | str


class RunPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Run, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Payload(Record):
    """What a run was given, and what it answered."""

    #: What the run was given: a turn's ``message``; null once it was erased.
    input: Any
    #: What it answered: a turn's ``text``, and ``json``, the same as a value, if the agent's version has an output
    #: schema; null until it is completed, and once it was erased.
    output: Any
    #: Of a dry run that was started with fixtures: those.
    fixtures: dict[str, Any] | None
    #: Of a dry run that was started so as not to ask models: ``skip``.
    models: DryRunModels | None
    #: When all was erased; only then.
    erased_at: datetime | None


class RunStepPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[RunStep, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class RunStep(Record):
    """A step of a run."""

    #: Its number, from 1.
    step: int
    kind: StepKind
    #: The model's or the tool's name.
    name: str
    #: Where it stands in the run's flow; left out in an agent's turn.
    path: str
    status: StepStatus
    #: What it came to: a completed step may have failed. Null while it is under way, and for a call whose answer was
    #: erased.
    outcome: StepOutcome | None
    #: The newest attempt, from 1.
    attempt: int
    #: What it answered; null until it is completed, and once it was erased. Of an approval, what everybody may know who
    #: may read the run: ``decision`` and ``approvalId``. Of a model, its ``reasoning`` too, if it gave any.
    result: Any
    #: When the newest attempt began.
    started_at: datetime
    #: When it ended.
    completed_at: datetime | None

#: What a step is.
#: ``model``: A call of a model.
#: ``tool``: A call of a tool.
#: ``http``: An HTTP request.
#: ``wait``: A wait for a time.
#: ``child``: Child runs, until they have ended.
#: ``approval``: An approval, until it is closed.
#: ``guardrail``: Guardrails that judge a text.
StepKind: TypeAlias = Literal["model", "tool", "http", "wait", "child", "approval", "guardrail"] | str

#: Where a step stands.
#: ``running``: Under way, or was when its process died.
#: ``completed``: Done; never done again.
#: ``failed``: Its newest attempt failed.
StepStatus: TypeAlias = Literal["running", "completed", "failed"] | str

#: What a step came to.
#: ``succeeded``: It did what it was begun for.
#: ``failed``: A call was answered with an error or was not made, or a run that it began did not complete.
#: ``unknown``: A call may have taken effect: nobody got its answer.
#: ``refused``: Its approval was not given.
StepOutcome: TypeAlias = Literal["succeeded", "failed", "unknown", "refused"] | str


class Progress(Record):
    """A run and a page of its events."""

    run: Run
    #: The events, in order.
    data: tuple[RunEvent, ...]
    #: More events stand already: ask again with ``after`` the last number.
    has_more: bool


class OtherRunEvent(Record):
    """One that this client does not know: a later server sent it."""

    seq: int | None
    created_at: datetime
    #: Any other text. It has a type of its own, so that those that are known tell the rest apart.
    kind: Literal["of a later server"]
    data: Any


class StepRef(Record):
    """An attempt of a step."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    #: What the step does.
    type: StepKind
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None


class ToolCall(Record):
    """A call that a model asks for."""

    #: The model's id of the call.
    id: str
    #: The tool's name, as the model wrote it.
    name: str
    #: The arguments as the model wrote them: JSON text, if it did well.
    arguments: str


class TokenCounts(Record):
    """What a provider counted in one call."""

    #: What the model read.
    prompt: int | None
    #: What it wrote.
    completion: int | None
    #: Of the prompt: read from a cache.
    cache_read: int | None
    #: Of the prompt: written to a cache.
    cache_write: int | None
    #: Of the completion: reasoning.
    reasoning: int | None


class ChildEnd(Record):
    """How a child run ended."""

    #: The child.
    run_id: str
    #: ``completed``, ``failed`` or ``cancelled``.
    status: str

#: How an approval stands.
#: ``waiting``: Nobody has decided.
#: ``approved``: A reviewer agreed.
#: ``rejected``: A reviewer refused.
#: ``escalated``: Another approval took its place.
#: ``expired``: Its time was over before anybody decided.
#: ``voided``: Its run ended before.
ApprovalStatus: TypeAlias = Literal["waiting", "approved", "rejected", "escalated", "expired", "voided"] | str

#: What guardrails decided of a text.
#: ``allow``: It goes on as it is.
#: ``block``: It goes no further.
#: ``redact``: What was found in it was replaced.
TextVerdict: TypeAlias = Literal["allow", "block", "redact"] | str


class TaskRef(Record):
    """A task of a flow."""

    #: Its JSON pointer in the definition.
    path: str
    #: What it is.
    type: FlowNodeType
    #: In a loop: the iteration, from 0.
    iteration: int | None


class TextDelta(Record):
    """Text that a model is writing."""

    #: The step whose text it is.
    step: int
    #: The attempt of the step. Text of an earlier attempt is void.
    attempt: int
    #: How many characters of the attempt's text stand before it.
    offset: int
    #: The characters.
    text: str


class ReasoningDelta(Record):
    """Reasoning of a model, while it thinks. Not for readers with a public token."""

    #: The step whose reasoning it is.
    step: int
    #: The attempt of the step. Reasoning of an earlier attempt is void.
    attempt: int
    #: How many characters of the attempt's reasoning stand before it.
    offset: int
    #: The characters.
    text: str

#: Why a stream ends.
#: ``run-finished``: The run is finished and its last event was sent.
#: ``credential-ended``: The credential has ended or was revoked.
#: ``permission-denied``: The reader may not read the run any more.
#: ``server-stopping``: The server is stopping: come back.
StreamEndReason: TypeAlias = Literal["run-finished", "credential-ended", "permission-denied", "server-stopping"] | str

#: Why a stream is cut.
#: ``reader-too-slow``: The reader cannot keep up.
StreamResetReason: TypeAlias = Literal["reader-too-slow"] | str


class RunCheckPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[RunCheck, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class RunCheck(Record):
    """A check that a guardrail made of a run."""

    #: The step that it belongs to.
    step: int
    #: Its attempt, from 1.
    attempt: int
    #: Which of the attempt's checks, from 0.
    ordinal: int
    point: GuardrailPoint
    #: At ``tool.arguments``: which of the calls of the model's answer, from 0. Otherwise null.
    call: int | None
    #: The guardrail's name.
    name: str
    #: What judged, such as ``builtin:pii``.
    evaluator: str
    origin: GuardrailOrigin
    #: The version of the tenant's or the project's policy; null for a guardrail of the agent's version.
    policy_version: int | None
    verdict: GuardrailVerdict
    #: What was found, in a word, such as ``card``; ``failed`` if the check itself failed; null if nothing was found.
    code: str | None
    #: What was found, or why the check failed, in a sentence that never quotes the text. Null if nothing was found, and
    #: once the run's payload was erased.
    reason: str | None
    #: Of a check that failed: what became of the text. Otherwise null.
    on_error: GuardrailOnError | None
    #: Microseconds that it took.
    duration_us: int
    #: SHA-256 of the text that was judged, in hexadecimal.
    digest: str
    created_at: datetime


class RunState(Record):
    """Where a run stands. For people who look into a run: a later version may keep, and show, something else."""

    status: Status
    #: What it waits for; only while it waits.
    waiting_for: WaitingFor | None
    #: Since when; only while it waits.
    waiting_since: datetime | None
    #: When it goes on at the latest; only while it waits.
    wake_at: datetime | None
    #: The newest step; null before the first one.
    step: int | None
    #: When the newest attempt of that began.
    step_started_at: datetime | None
    #: Where that stands in the run's flow, as a JSON pointer: the run's place in its program. Left out in an agent's
    #: turn.
    path: str
    #: Of a flow, where it stood as that step began; null before the first step, and once it was erased.
    flow: FlowPosition | None


class FlowPosition(Record):
    """Where a run of a flow stood as its newest step began."""

    #: The version of the form in which it is kept.
    format: int
    #: The tasks under way, outermost first.
    tasks: tuple[TaskUnderWay, ...]
    #: What the last task answered, or what the innermost list was given.
    data: ShownValue
    #: What tasks have exported: ``$context``.
    context: ShownValue
    #: How many tasks were entered so far.
    tasks_entered: int


class TaskUnderWay(Record):
    """A task under way."""

    #: The JSON pointer of the task in the definition.
    path: str
    position: TaskPosition
    #: When it began.
    started_at: datetime
    #: When its time is over.
    until: datetime | None
    #: The iteration or the branch, from 0.
    index: int | None
    #: Of a loop, how many items it goes over.
    items: int | None
    #: The try, from 1; between two tries the next one.
    attempt: int | None
    #: The error that is handled.
    error: ShownValue | None
    #: What the task was given, after ``input.from``.
    input: ShownValue

#: Where a task under way stands.
#: ``effect``: In its effect.
#: ``do``: In its list.
#: ``for``: In an iteration of a loop.
#: ``try``: In the list that is tried.
#: ``pause``: Between two tries.
#: ``catch``: In the list that handles the error.
#: ``parallel``: In iterations that run beside each other, as runs of their own.
#: ``branch``: In the branch that this run is.
TaskPosition: TypeAlias = Literal["effect", "do", "for", "try", "pause", "catch", "parallel", "branch"] | str


class ShownValue(Record):
    """A value, if it is not too long."""

    #: Its length as JSON.
    bytes: int
    #: Null if it has more than 16 KiB.
    value: Any

#: What has sums of its own.
#: ``day``: Each day, in UTC.
#: ``project``: Each project.
#: ``agent``: Each agent, and together what no agent asked.
#: ``model``: Each model of each model provider.
UsageGroup: TypeAlias = Literal["day", "project", "agent", "model"] | str


class UsageReport(Record):
    """What was used in a time."""

    from_: datetime
    to: datetime
    #: The sums, by day, then project, agent and model. What was not used has none.
    data: tuple[UsageSum, ...]
    #: False, as on the last page of any list: the sums are one page.
    has_more: bool


class UsageSum(Record):
    """The sums of a group."""

    #: The day, such as ``2026-01-31``; by day alone.
    day: str | None
    #: By project alone.
    project_id: str | None
    #: By agent alone, where an agent asked.
    agent_id: str | None
    #: By model alone.
    model_provider_id: str | None
    #: By model alone.
    model: str | None
    #: Model calls, failed and lost ones included.
    calls: int
    #: US dollars; a call without a price counts as 0.
    cost_usd: float
    #: Tokens by kind.
    tokens: Tokens
    #: Of the calls, those whose cost is not known: the model had no price, or the call did not say what it used. They
    #: count 0.
    calls_without_cost: int

#: What kinds of objects hints are about.
#: ``run``: A run began, went on or ended.
#: ``approval``: An approval was opened, assigned or closed.
ChangeKind: TypeAlias = Literal["run", "approval"] | str


class Changed(Record):
    """Look at this again."""

    kind: ChangeKind
    #: The object; left out where any of the kind may have changed.
    id: str | None
    #: Its project.
    project_id: str | None


class ApprovalPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[Approval, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class Approval(Record):
    """What a run asks a reviewer."""

    id: str
    project_id: str
    #: The run that waits for it.
    run_id: str
    #: The run at the top of that run's tree.
    root_run_id: str
    source: ApprovalSource
    #: Where the step that waits stands in the run's program.
    path: str
    title: str
    #: The reviewer role that may decide.
    required_role: str
    status: ApprovalStatus
    #: Who started the run; this person does not decide.
    requested_by: str
    assigned_to: str | None
    created_at: datetime
    #: Until when it waits. Nobody's silence approves it.
    expires_at: datetime
    #: When another role is asked in its place.
    escalates_at: datetime | None
    #: The approval whose place this one took.
    escalated_from: str | None
    #: The approval that took the place of this one.
    escalated_to: str | None
    closed_at: datetime | None
    #: Who closed it; null while it waits, and where time or the end of the run did.
    decided_by: str | None
    comment: str | None

#: What asks for an approval.
#: ``flow``: A step of a flow.
#: ``tool``: A tool call of an agent.
ApprovalSource: TypeAlias = Literal["flow", "tool"] | str


class ApprovalEvent(Record):
    """Something that happened to an approval."""

    #: The place among all events of approvals; later ones have higher numbers, with gaps.
    seq: int
    kind: ApprovalEventKind
    created_at: datetime
    data: ApprovalChange

#: What happened to an approval.
#: ``approval.waiting``: It was opened, and waits.
#: ``approval.assigned``: It waits, and was assigned to somebody or taken from everybody.
#: ``approval.closed``: It waits no more.
ApprovalEventKind: TypeAlias = Literal["approval.waiting", "approval.assigned", "approval.closed"] | str


class ApprovalChange(Record):
    """An approval, as the event left it."""

    approval_id: str
    project_id: str
    run_id: str
    title: str
    #: The reviewer role that may decide.
    required_role: str
    status: ApprovalStatus
    #: Whom it is assigned to by now, if that has changed since.
    assigned_to: str | None
    #: Until when it waits, if it waits.
    expires_at: datetime


class StreamStart(Record):
    """The stream begins here: an event with a higher number comes on it, whatever has a lower one shows in the lists.
    """

    #: The number.
    seq: int


class WholeApproval(Record):
    """An approval with what it is about."""

    id: str
    project_id: str
    #: The run that waits for it.
    run_id: str
    #: The run at the top of that run's tree.
    root_run_id: str
    source: ApprovalSource
    #: Where the step that waits stands in the run's program.
    path: str
    title: str
    #: The reviewer role that may decide.
    required_role: str
    status: ApprovalStatus
    #: Who started the run; this person does not decide.
    requested_by: str
    assigned_to: str | None
    created_at: datetime
    #: Until when it waits. Nobody's silence approves it.
    expires_at: datetime
    #: When another role is asked in its place.
    escalates_at: datetime | None
    #: The approval whose place this one took.
    escalated_from: str | None
    #: The approval that took the place of this one.
    escalated_to: str | None
    closed_at: datetime | None
    #: Who closed it; null while it waits, and where time or the end of the run did.
    decided_by: str | None
    comment: str | None
    subject: ApprovalSubject
    #: Whether the caller may decide about it now.
    may_decide: bool
    #: The code that a decision of the caller would be answered with.
    may_not_because: str | None
    #: What the caller may put in place of the subject's: ``arguments`` of a tool call.
    may_edit: tuple[str, ...]
    #: What happened to it, in order.
    log: tuple[ApprovalLogEntry, ...]


class ApprovalSubject(Record):
    """What an approval is about, and what the reviewer gave."""

    #: Of a tool call: the tool's name.
    tool: str | None
    #: Of a tool call: what the tool is to be called with.
    arguments: Any
    #: What the run shows beside.
    context: Any
    #: Names what is asked: a decision that carries it is refused if it is not about that.
    digest: str
    #: What the reviewer put in place of the arguments.
    edited_arguments: Any
    #: The JSON Schema that the answer of who approves has to fit: an object of flat fields. Null: it takes any answer,
    #: or none.
    form: Any
    #: What the reviewer answered.
    answer: Any
    #: Of a tool call: an earlier call with this content may have been made, and nobody got its answer. Look there
    #: before you approve another one. Null: there is none.
    earlier_call: EarlierCall | None


class EarlierCall(Record):
    """An earlier call with the same content, whose answer nobody got."""

    #: The approval that allowed it; null if nobody was asked.
    approval_id: str | None
    #: The reviewer of that approval changed its arguments.
    is_edited: bool


class ApprovalLogEntry(Record):
    """Something that happened to an approval."""

    #: ``opened``, ``assigned``, or as it was closed.
    kind: str
    #: Who did it; null where the run, time or the end of the run did.
    user_id: str | None
    #: By which key.
    key_id: str | None
    at: datetime

#: Yes or no.
#: ``approve``: The run goes on with it.
#: ``reject``: The run is told that it may not.
Verdict: TypeAlias = Literal["approve", "reject"] | str


class Inbox(Record):
    """What waits for the caller."""

    #: The rows.
    data: tuple[InboxItem, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None
    counts: InboxCounts


class InboxItem(Record):
    """Something that waits for the caller."""

    #: What kind of thing ``id`` names.
    kind: InboxKind
    id: str
    project_id: str
    title: str
    #: Since when it waits.
    since: datetime
    #: Until when it waits, if it does not wait for ever.
    expires_at: datetime | None
    #: It is assigned to the caller; otherwise to nobody.
    is_assigned: bool

#: What kinds of things wait.
#: ``approval``: An approval.
InboxKind: TypeAlias = Literal["approval"] | str


class InboxCounts(Record):
    """How much the whole inbox holds."""

    #: Assigned to the caller.
    assigned: int
    #: Assigned to nobody.
    unassigned: int


class InboxSummary(Record):
    """How much waits for the caller."""

    #: Approvals, those that are assigned to nobody included; 100 stands for 100 or more.
    approvals: int

#: The kinds that an endpoint can be registered for.
#: ``run.finished``: A run that an app or the command line started has ended.
#: ``improvement-pass.finished``: An improvement pass has ended, whoever started it. Nothing sends it yet.
#: ``approval.requested``: An approval has begun to wait for a reviewer.
WebhookEventKind: TypeAlias = Literal["run.finished", "improvement-pass.finished", "approval.requested"] | str


class WebhookEndpoint(Record):
    """A receiver of webhooks."""

    endpoint_id: str
    url: str
    events: tuple[WebhookEventKind, ...]
    #: The secret that signs, by name only.
    secret_ref: SecretRef
    #: For 24 hours after another secret was named.
    previous_secret: PreviousWebhookSecret | None
    filter: WebhookFilterView | None
    state: WebhookEndpointState
    deliveries: WebhookDeliveryCounts
    #: When an attempt last succeeded.
    last_delivered_at: datetime | None
    #: When an attempt last failed.
    last_failed_at: datetime | None
    #: Why that attempt failed.
    last_error: WebhookFailure | None
    #: The HTTP status that it failed with.
    last_status: int | None
    created_by: str
    created_at: datetime
    updated_at: datetime


class PreviousWebhookSecret(Record):
    """A secret that signs beside the one that is named now."""

    secret_ref: SecretRef
    signs_until: datetime


class WebhookFilterView(Record):
    """The filter as it stands."""

    flow_ids: tuple[str, ...] | None
    project_id: str | None
    include_dry_runs: bool | None

#: How deliveries to an endpoint go.
#: ``healthy``: The newest attempt succeeded, or there was none.
#: ``failing``: The newest attempt failed.
WebhookEndpointState: TypeAlias = Literal["healthy", "failing"] | str


class WebhookDeliveryCounts(Record):
    """How many deliveries an endpoint has."""

    delivered: int
    failed: int
    #: 1000 stands for 1000 or more.
    being_sent: int

#: Why an attempt failed.
#: ``no-answer``: No answer in time.
#: ``host-not-resolved``: The host name does not resolve.
#: ``nothing-listening``: Nothing is listening.
#: ``url-refused``: The address is one that webhooks may not go to.
#: ``tls-refused``: The TLS certificate was not accepted.
#: ``connection-failed``: The connection failed; so too an attempt whose outcome a crash hid.
#: ``http-status``: The receiver answered with a status other than 2xx.
#: ``secret-unavailable``: The signing secret cannot be read or cannot sign.
#: ``endpoint-unregistered``: The endpoint was unregistered before the delivery went out.
WebhookFailure: TypeAlias = (
    Literal[
        "no-answer",
        "host-not-resolved",
        "nothing-listening",
        "url-refused",
        "tls-refused",
        "connection-failed",
        "http-status",
        "secret-unavailable",
        "endpoint-unregistered",
    ]
    | str
)


class WebhookEndpointPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[WebhookEndpoint, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class CheckedUrl(Record):
    """What is said of a URL."""

    #: As it would be stored; where it is none, as it was given, 2048 bytes of it.
    url: str
    #: An endpoint with this URL would be registered.
    allowed: bool
    #: What its host is or resolves to, refused ones included.
    addresses: tuple[str, ...]
    #: Why it is refused.
    refusal: UrlRefusal | None
    #: Why no address is known: it is allowed, and each attempt looks its host up again.
    unresolved: str | None


class UrlRefusal(Record):
    """Why a URL is refused."""

    #: The rule that refuses.
    rule: str
    #: The address that it refuses; absent where it refuses the URL itself or its host's name.
    address: str | None
    message: str


class WebhookDelivery(Record):
    """An event on its way to an endpoint."""

    id: str
    endpoint_id: str
    #: The event: the header ``webhook-id`` of every attempt.
    event_id: str
    #: The event's kind.
    type: str
    #: A person sent it as a test.
    is_test: bool
    #: The run that it tells of; only of ``run.finished``.
    run_id: str | None
    #: How that run ended.
    run_status: str | None
    #: The delivery that this one sends again.
    resends: str | None
    #: The newest delivery that sends this one again.
    resent_as: str | None
    state: WebhookDeliveryState
    #: Its story in a sentence.
    summary: str
    #: Attempts that have ended.
    attempt_count: int
    next_attempt_at: datetime | None
    #: Why the newest attempt failed.
    last_error: WebhookFailure | None
    #: The HTTP status that the newest attempt was answered with, once delivered a 2xx. Null before the first attempt,
    #: without an answer, and if unregistering the endpoint ended the delivery.
    last_status: int | None
    created_at: datetime
    #: When it was delivered, or failed for good.
    ended_at: datetime | None

#: The states of a delivery.
#: ``being-sent``: It waits for an attempt, or one is under way.
#: ``delivered``: The receiver answered with a 2xx status.
#: ``failed``: Nothing more is sent.
WebhookDeliveryState: TypeAlias = Literal["being-sent", "delivered", "failed"] | str


class Resent(Record):
    """What is sent again."""

    #: Deliveries that are sent again.
    count: int
    #: More failed since then: ask again.
    has_more: bool


class WebhookDeliveryPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[WebhookDelivery, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class WebhookDeliveryWithAttempts(Record):
    """A delivery with all that is known of it."""

    id: str
    endpoint_id: str
    #: The event: the header ``webhook-id`` of every attempt.
    event_id: str
    #: The event's kind.
    type: str
    #: A person sent it as a test.
    is_test: bool
    #: The run that it tells of; only of ``run.finished``.
    run_id: str | None
    #: How that run ended.
    run_status: str | None
    #: The delivery that this one sends again.
    resends: str | None
    #: The newest delivery that sends this one again.
    resent_as: str | None
    state: WebhookDeliveryState
    #: Its story in a sentence.
    summary: str
    #: Attempts that have ended.
    attempt_count: int
    next_attempt_at: datetime | None
    #: Why the newest attempt failed.
    last_error: WebhookFailure | None
    #: The HTTP status that the newest attempt was answered with, once delivered a 2xx. Null before the first attempt,
    #: without an answer, and if unregistering the endpoint ended the delivery.
    last_status: int | None
    created_at: datetime
    #: When it was delivered, or failed for good.
    ended_at: datetime | None
    #: Those that have ended, the first one first.
    attempts: tuple[WebhookAttempt, ...]
    #: The body that is sent; null once it was dropped, with what was sent before.
    event: Any


class WebhookAttempt(Record):
    """One attempt of a delivery."""

    #: From 1.
    attempt: int
    begun_at: datetime
    #: Null where the version before began it, and it is under way.
    ended_at: datetime | None
    duration_ms: int | None
    #: Why it failed; null unless it did.
    reason: WebhookFailure | None
    #: What went wrong, in words; it names the rule and the address that refuse the receiver.
    message: str | None
    #: The HTTP status of the answer.
    status: int | None
    #: The address that was connected to, or tried.
    address: str | None
    #: The first 16 KiB of the answer's body; what is no UTF-8 is replaced.
    answer: str | None

#: Whether the caller may.
#: ``allowed``: The caller may.
#: ``denied``: The caller may not.
DecisionOutcome: TypeAlias = Literal["allowed", "denied"] | str


class AccessDecisionPage(Record):
    """A page of a list."""

    #: The rows.
    data: tuple[AccessDecision, ...]
    #: More rows follow.
    has_more: bool
    #: Give it as ``cursor`` to read on; absent on the last page.
    next_cursor: str | None


class AccessDecision(Record):
    """An access decision."""

    #: Its id.
    id: str
    #: When it was decided.
    timestamp: datetime
    #: Who, as ``user:<user id>``.
    actor_subject: str
    #: What was asked for: ``read``, ``write``, ``admin`` or ``sign-in``.
    action: str
    #: On what, as ``<kind>:<id>``.
    resource: str
    #: Whether the actor may.
    outcome: DecisionOutcome
    #: Why, or which check refused.
    reason: str
    #: Which check decided: ``model``, or the name of a check before it.
    stage: str
    #: The part of the check that refused.
    failing_part: str | None
    #: What was asked of the authorization server; null if it was not asked.
    check: AccessCheck | None
    #: How long the decision took, in milliseconds.
    duration_ms: float
    #: The request, as its answer named it.
    request_id: str | None
    #: The request's trace (W3C Trace Context).
    trace_id: str | None
    #: The id of the credential that the request came with.
    key_id: str | None
    #: The credential that the request came with; null where its kind was not recorded, as before there were sessions.
    credential: RecordedCredential | None
    #: The route, as ``METHOD /path/{parameter}``.
    route: str | None
    #: The run that it is about.
    run_id: str | None
    #: The address that the request came from.
    client_address: str | None


class AccessCheck(Record):
    """What was asked of the authorization server."""

    #: Who, as ``user:<user id>``.
    user: str
    #: What, such as ``can_read``.
    relation: str
    #: On what, as ``<kind>:<id>``.
    object: str
    #: The authorization server's store.
    store_id: str
    #: The authorization model.
    model_id: str


class RecordedCredential(Record):
    """The credential that a request came with."""

    #: What it is.
    kind: CredentialKind
    #: Its id; of one that was opened or minted, the new one's.
    id: str


class OtherWebhookEvent(Record):
    """One that this client does not know: a later server sent it."""

    id: str
    created_at: datetime
    #: Any other text. It has a type of its own, so that those that are known tell the rest apart.
    type: Literal["of a later server"]
    data: Any


class WebhookRun(Record):
    """A run's fields in a ``run.finished`` event."""

    #: The run.
    id: str
    #: Its project.
    project_id: str
    #: ``agent.turn`` for an agent's turn.
    flow_id: str
    #: The version of the flow.
    flow_version: str
    #: Where it stands.
    status: Status
    #: As the caller said.
    dry_run: bool
    #: Why it failed; null unless it did. In a webhook event and in a list it names the task, the status and the error's
    #: title, and quotes no data of the run; the run itself has the whole message.
    failure_message: str | None
    #: When it was created.
    created_at: datetime
    #: When it ended; null until it has.
    completed_at: datetime | None
    #: What its model calls used.
    usage: Usage | None
    #: Only on an agent's turn.
    agent: RunAgent | None


class WebhookImprovementPass(Record):
    """An improvement pass that has ended."""

    #: The pass.
    id: str
    #: Its project.
    project_id: str
    #: How it ended.
    status: WebhookPassStatus
    #: What came of it; null where it did not come so far.
    outcome: WebhookPassOutcome | None
    #: When it began.
    created_at: datetime
    #: When it ended.
    completed_at: datetime

#: How an improvement pass ends.
#: ``completed``: It came to an end of its own.
#: ``failed``: It could not.
#: ``cancelled``: Somebody asked it to end.
WebhookPassStatus: TypeAlias = Literal["completed", "failed", "cancelled"] | str


class WebhookPassOutcome(Record):
    """What came of an improvement pass."""

    #: The proposal that it wrote; null where it wrote none.
    proposal_id: str | None


class WebhookApproval(Record):
    """An approval that waits for a reviewer."""

    #: The approval; the event has the same id.
    approval_id: str
    #: Its project.
    project_id: str
    #: The role that a reviewer needs.
    required_role: str
    #: What a reviewer reads first.
    title: str
    #: The user that it is assigned to; absent where it is nobody's.
    assigned_to: str | None
    #: When it began to wait.
    created_at: datetime
    #: Until when it waits.
    expires_at: datetime
    #: Its page in the console; absent where the runtime does not know its own public address.
    url: str | None


class Error(Record):
    """The error body."""

    error: ErrorContent


class ErrorContent(Record):
    """What went wrong."""

    #: A code that programs can rely on.
    code: str
    #: A sentence that says what is wrong and what to do.
    message: str
    #: Code-specific details.
    details: dict[str, Any]
    #: ``req-<uuid>``: the log has the cause under it.
    request_id: str


class DirectWay(Record):
    """A role of one's own."""

    kind: Literal["direct"]
    role: Role
    #: Since when; absent where no membership stands behind the role.
    joined_at: datetime | None


class TenantAdminWay(Record):
    """Admin of the tenant."""

    kind: Literal["tenant-admin"]


class OrgAdminWay(Record):
    """Admin of the project's org."""

    kind: Literal["org-admin"]


class TeamWay(Record):
    """A role of a team."""

    kind: Literal["team"]
    team_id: str
    team_name: str
    role: Role


class ModelStepAnswer(Record):
    """What a model answered."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    type: Literal["model"]
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None
    #: What it came to; absent in events of earlier versions.
    outcome: StepOutcome | None
    #: The whole text; it replaces what was streamed.
    text: str
    #: The tools that it wants called.
    tool_calls: tuple[ToolCall, ...]
    #: Why it stopped: ``stop``, ``length`` (the answer was cut at its maximum length) or ``tool_calls``.
    finish_reason: str | None
    #: The model's reasoning can be read with the run's steps; absent without any.
    has_reasoning: bool | None
    #: What the provider counted; null where it counted nothing.
    tokens: TokenCounts


class ToolStepAnswer(Record):
    """What a tool answered."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    type: Literal["tool"]
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None
    #: What it came to; absent in events of earlier versions.
    outcome: StepOutcome | None
    #: Whether the model was told of an error.
    is_error: bool
    #: What the model was told, cut after 16 KiB.
    output: str
    #: Whether it was cut.
    output_truncated: bool


class ChildStepAnswer(Record):
    """How child runs ended."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    type: Literal["child"]
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None
    #: What it came to; absent in events of earlier versions.
    outcome: StepOutcome | None
    #: In the order in which they were begun.
    children: tuple[ChildEnd, ...]


class ApprovalStepAnswer(Record):
    """How an approval was closed."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    type: Literal["approval"]
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None
    #: What it came to; absent in events of earlier versions.
    outcome: StepOutcome | None
    #: Null in a dry run, which opens none.
    approval_id: str | None
    #: How it was closed.
    decision: ApprovalStatus


class GuardrailStepAnswer(Record):
    """What guardrails decided of a text, which the event does not have."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    type: Literal["guardrail"]
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None
    #: What it came to; absent in events of earlier versions.
    outcome: StepOutcome | None
    #: What they decided.
    verdict: TextVerdict
    #: The check that blocked the text; absent otherwise.
    blocked_by: str | None
    #: What was found, in a word; absent if that is nothing.
    code: str | None


class HttpStepAnswer(Record):
    """What a server answered to an HTTP request."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    type: Literal["http"]
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None
    #: What it came to; absent in events of earlier versions.
    outcome: StepOutcome | None
    #: The status that the server answered with.
    status_code: int


class SimulatedStepAnswer(Record):
    """What a dry run did not perform."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    type: Literal["tool", "http", "child", "guardrail"]
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None
    #: What it came to; absent in events of earlier versions.
    outcome: StepOutcome | None
    #: Always true.
    simulated: bool


class WaitStepAnswer(Record):
    """A wait is over. Last, since it reads from anything."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    type: Literal["wait"]
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None
    #: What it came to; absent in events of earlier versions.
    outcome: StepOutcome | None


class RunCreatedData(Record):
    #: What runs.
    flow_id: str
    #: Its version.
    flow_version: str
    #: Who began it.
    origin: Origin
    #: As the caller said.
    dry_run: bool
    #: For an agent's turn.
    agent: RunAgent | None
    #: As the caller gave them; absent without any.
    labels: dict[str, str] | None
    #: Of an agent's turn whose text guardrails judge: whether readers get text after the verdict; absent otherwise.
    streaming: GuardrailStreaming | None


class RunCreatedEvent(Record):
    """The run exists; it waits for a thread."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["run.created"]
    data: RunCreatedData


class RunRetriedData(Record):
    #: The run that failed.
    retry_of: str
    #: How many of its steps are taken over, from the first.
    steps: int


class RunRetriedEvent(Record):
    """The run takes up one that failed. Steps that were done there are taken over and not done again; what they answered
    is in that run's events.
    """

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["run.retried"]
    data: RunRetriedData


class RunStartedEvent(Record):
    """Somebody carries it on, for the first time."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["run.started"]
    data: dict[str, Any]


class RunWaitingData(Record):
    #: What it waits for.
    waiting_for: WaitingFor | None
    #: Of a wait for a retry: why, in a sentence.
    reason: str | None
    #: Of a wait for a retry: about when it goes on.
    retry_at: str | None
    #: Of a wait for a time: when it is over.
    wake_at: str | None
    #: The step that goes on, or will be tried again.
    step: int | None
    #: The attempt that waits, or that failed.
    attempt: int | None


class RunWaitingEvent(Record):
    """It waits, and holds nothing meanwhile. After a wait for a retry a ``step.started`` with a higher attempt follows.
    """

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["run.waiting"]
    data: RunWaitingData


class StepStartedEvent(Record):
    """An attempt of a step begins. Text of an earlier attempt of the step is void."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["step.started"]
    data: StepRef


class ContextTrimmedData(Record):
    #: The model's step.
    step: int
    #: The attempt.
    attempt: int
    #: How many exchanges were left out: a message of the user with all that followed it.
    exchanges: int
    #: The model's context window, in tokens, if it is known: a server may find a prompt too long without saying how
    #: much it takes.
    context_window: int | None


class ContextTrimmedEvent(Record):
    """The conversation was longer than the model's context window, so its oldest exchanges were left out of what the
    model was asked. Comes before the end of the step.
    """

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["context.trimmed"]
    data: ContextTrimmedData


class GuardrailDecidedData(Record):
    #: The step.
    step: int
    #: The attempt.
    attempt: int
    #: Where the check stands.
    point: GuardrailPoint
    #: Of a call: which of the model's answer, from 0.
    call: int | None
    #: The check.
    name: str
    #: What it decided.
    verdict: GuardrailVerdict


class GuardrailDecidedEvent(Record):
    """A guardrail did not let something pass as it was. What it found is not told."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["guardrail.decided"]
    data: GuardrailDecidedData


class GuardrailFailedData(Record):
    #: The step.
    step: int
    #: The attempt.
    attempt: int
    #: Where the check stands.
    point: GuardrailPoint
    #: Of a call: which of the model's answer, from 0.
    call: int | None
    #: The check.
    name: str
    #: What became of what it was to judge.
    on_error: GuardrailOnError


class GuardrailFailedEvent(Record):
    """A guardrail failed. What it was to judge was blocked, or went on unchecked."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["guardrail.failed"]
    data: GuardrailFailedData


class OtherStepCompletedData(Record):
    """One that this client does not know: a later server sent it."""

    step: int
    attempt: int
    #: Any other text. It has a type of its own, so that those that are known tell the rest apart.
    type: Literal["of a later server"]
    name: str
    path: str | None
    call_id: str | None
    erased: bool | None
    outcome: StepOutcome | None


class StepCompletedEvent(Record):
    """A step is done, and is never done again. It may have failed all the same: see ``outcome``."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["step.completed"]
    #: An attempt of a step.
    data: StepCompletedData


class StepRestartedData(Record):
    """An attempt of a step."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    #: What the step does.
    type: StepKind
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None
    #: The attempt whose call was lost: nobody knows what it used.
    lost_attempt: int


class StepRestartedEvent(Record):
    """The process that carried the run on died during a step, which is about to be done again."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["step.restarted"]
    #: An attempt of a step.
    data: StepRestartedData


class StepFailedData(Record):
    """An attempt of a step."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    #: What the step does.
    type: StepKind
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None
    #: Why, in a sentence.
    reason: str
    #: ``unknown`` if the call may have taken effect; absent in events of earlier versions.
    outcome: StepOutcome | None
    #: Whether it will be tried again.
    will_retry: bool


class StepFailedEvent(Record):
    """An attempt of a step failed."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["step.failed"]
    #: An attempt of a step.
    data: StepFailedData


class StepSimulatedData(Record):
    """An attempt of a step."""

    #: Its number in the run, from 1.
    step: int
    #: The attempt, from 1.
    attempt: int
    #: What the step does.
    type: StepKind
    #: Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    name: str
    #: Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    path: str | None
    #: For a tool that a model calls, its run and its approval: the model's id of the call.
    call_id: str | None
    #: True once what was said was erased: texts are empty then.
    erased: bool | None
    #: What it would have sent, as the flow or the model says it; null if that has more than 16 KiB.
    request: Any
    #: Whether it was left out.
    request_omitted: bool


class StepSimulatedEvent(Record):
    """A dry run does not perform a step, which is completed with this."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["step.simulated"]
    #: An attempt of a step.
    data: StepSimulatedData


class TaskStartedEvent(Record):
    """A task of a flow begins. Of tasks that only compute, as of all, the events are written with the next step."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["task.started"]
    data: TaskRef


class TaskCompletedEvent(Record):
    """A task of a flow is done."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["task.completed"]
    data: TaskRef


class TaskSkippedEvent(Record):
    """A task of a flow is left out: its ``if`` does not hold."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["task.skipped"]
    data: TaskRef


class TaskFaultedData(Record):
    """A task of a flow."""

    #: Its JSON pointer in the definition.
    path: str
    #: What it is.
    type: FlowNodeType
    #: In a loop: the iteration, from 0.
    iteration: int | None
    #: Its status, as those of HTTP.
    status: int
    #: What went wrong, cut after 200 characters.
    title: str
    #: True once what was said was erased.
    erased: bool | None
    #: It is a ``try`` whose list will be tried again.
    will_retry: bool


class TaskFaultedEvent(Record):
    """A task of a flow ends with an error, or is cut by its time."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["task.faulted"]
    #: A task of a flow.
    data: TaskFaultedData


class TaskCaughtData(Record):
    """A task of a flow."""

    #: Its JSON pointer in the definition.
    path: str
    #: What it is.
    type: FlowNodeType
    #: In a loop: the iteration, from 0.
    iteration: int | None
    #: Its status, as those of HTTP.
    status: int
    #: What went wrong, cut after 200 characters.
    title: str
    #: True once what was said was erased.
    erased: bool | None


class TaskCaughtEvent(Record):
    """A ``try`` of a flow handles an error of its list, and does not try it again."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["task.caught"]
    #: A task of a flow.
    data: TaskCaughtData


class EventsOmittedData(Record):
    #: How many.
    count: int


class EventsOmittedEvent(Record):
    """So many events of tasks were left out here: a run tells of 5,000 tasks at most, and of 200 between two steps."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["events.omitted"]
    data: EventsOmittedData


class ChildStartedData(Record):
    #: The step that began it.
    step: int
    #: The task of the flow, or the call of the turn.
    path: str
    #: Which branch or iteration of the task, from 0.
    index: int
    #: The run that began.
    run_id: str
    #: What runs.
    flow_id: str


class ChildStartedEvent(Record):
    """A step began a run."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["child.started"]
    data: ChildStartedData


class ChildCompletedData(Record):
    #: The step that began it.
    step: int
    #: The task of the flow, or the call of the turn.
    path: str
    #: Which branch or iteration of the task, from 0.
    index: int
    #: The run that ended.
    run_id: str
    #: ``completed``, ``failed`` or ``cancelled``.
    status: str
    #: What it used, runs below it included.
    usage: Usage


class ChildCompletedEvent(Record):
    """A run that a step began has ended."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["child.completed"]
    data: ChildCompletedData


class ApprovalRequestedData(Record):
    #: The step that waits for it.
    step: int
    #: Where that stands in the run's program.
    path: str | None
    #: Of a call of a tool by a model: the model's id of the call.
    call_id: str | None
    #: The approval.
    approval_id: str
    #: What a reviewer reads first.
    title: str
    #: The role that may decide it.
    required_role: str
    #: How long it waits, from its opening.
    expires_after_ms: int


class ApprovalRequestedEvent(Record):
    """An approval was opened, and the run waits for it."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["approval.requested"]
    data: ApprovalRequestedData


class ApprovalDecidedData(Record):
    #: The step that waited for it.
    step: int
    #: The approval.
    approval_id: str
    #: How it was closed.
    status: ApprovalStatus


class ApprovalDecidedEvent(Record):
    """An approval was closed. Who decided it, and why, is for reviewers."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["approval.decided"]
    data: ApprovalDecidedData


class ApprovalEscalatedData(Record):
    #: The step that waits for it.
    step: int
    #: The approval that was closed.
    approval_id: str
    #: The approval that waits in its place, with the same title and the same end of its time.
    to: str
    #: The role that may decide that one.
    required_role: str


class ApprovalEscalatedEvent(Record):
    """An approval was closed, and another one for another role waits in its place. Who escalated it, if it was not its
    time,
    is for reviewers.
    """

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["approval.escalated"]
    data: ApprovalEscalatedData


class ApprovalUnassignedData(Record):
    #: The step that waits for it.
    step: int
    #: The approval.
    approval_id: str
    #: The role that may decide it.
    required_role: str


class ApprovalUnassignedEvent(Record):
    """An approval was opened and assigned to nobody: the person whom its definition names is no active user with the role.
    """

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["approval.unassigned"]
    data: ApprovalUnassignedData


class RunCancelRequestedEvent(Record):
    """Somebody asked the run to end while it was carried on."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["run.cancelRequested"]
    data: dict[str, Any]


class RunCompletedData(Record):
    #: The agent's answer was cut at its maximum length; absent otherwise.
    answer_cut: bool | None
    #: Those of the run; absent without any.
    labels: dict[str, str] | None


class RunCompletedEvent(Record):
    """The last event: the run has an output."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["run.completed"]
    data: RunCompletedData


class RunFailedData(Record):
    #: Why, in a sentence.
    failure_message: str
    #: The same without data of the run: what webhook events, lists and the operator's log have.
    failure_summary: str | None
    #: Those of the run; absent without any.
    labels: dict[str, str] | None


class RunFailedEvent(Record):
    """The last event: the run failed."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["run.failed"]
    data: RunFailedData


class RunCancelledData(Record):
    #: Those of the run; absent without any.
    labels: dict[str, str] | None


class RunCancelledEvent(Record):
    """The last event: the run was cancelled."""

    #: Its number in the run, from 1 without gaps.
    seq: int
    #: When it was written.
    created_at: datetime
    kind: Literal["run.cancelled"]
    data: RunCancelledData


class RunFinishedWebhookData(Record):
    #: The run, as it is read at ``/v1/runs/{runId}``.
    run: WebhookRun


class RunFinishedWebhookEvent(Record):
    """A run has ended."""

    #: The event: equal to the header ``webhook-id``, and the same however often it is sent.
    id: str
    #: When it was emitted.
    created_at: datetime
    type: Literal["run.finished"]
    data: RunFinishedWebhookData


class ImprovementPassFinishedWebhookData(Record):
    #: The pass.
    pass_: WebhookImprovementPass


class ImprovementPassFinishedWebhookEvent(Record):
    """An improvement pass has ended. Nothing sends it yet."""

    #: The event: equal to the header ``webhook-id``, and the same however often it is sent.
    id: str
    #: When it was emitted.
    created_at: datetime
    type: Literal["improvement-pass.finished"]
    data: ImprovementPassFinishedWebhookData


class ApprovalRequestedWebhookData(Record):
    #: The approval, without what it is about.
    approval: WebhookApproval


class ApprovalRequestedWebhookEvent(Record):
    """An approval waits for a reviewer."""

    #: The event: equal to the header ``webhook-id``, and the same however often it is sent.
    id: str
    #: When it was emitted.
    created_at: datetime
    type: Literal["approval.requested"]
    data: ApprovalRequestedWebhookData


class TestWebhookData(Record):
    #: The endpoint that it was sent to.
    endpoint_id: str
    #: Says that it is a test.
    message: str


class TestWebhookEvent(Record):
    """A person sent a test."""

    #: The event: equal to the header ``webhook-id``, and the same however often it is sent.
    id: str
    #: When it was emitted.
    created_at: datetime
    type: Literal["webhook.test"]
    data: TestWebhookData


class TextDeltaEvent(Record):
    """Text that a model is writing."""

    kind: Literal["text.delta"]
    data: TextDelta


class ReasoningDeltaEvent(Record):
    """Reasoning of a model, while it thinks. Not for readers with a public token."""

    kind: Literal["reasoning.delta"]
    data: ReasoningDelta


class ChangedEvent(Record):
    """Look at this again."""

    kind: Literal["changed"]
    data: Changed


class OtherChangeStreamEvent(Record):
    """What this client does not know of the stream of ``changes.follow``."""

    kind: Literal["of a later server"]
    data: Any


class StreamStartEvent(Record):
    """The stream begins here: an event with a higher number comes on it, whatever has a lower one shows in the lists.
    """

    kind: Literal["stream.start"]
    data: StreamStart


#: A way into a project.
Way: TypeAlias = DirectWay | TenantAdminWay | OrgAdminWay | TeamWay | OtherWay

#: An event of a run, as clients read it.
RunEvent: TypeAlias = (
    RunCreatedEvent
    | RunRetriedEvent
    | RunStartedEvent
    | RunWaitingEvent
    | StepStartedEvent
    | ContextTrimmedEvent
    | GuardrailDecidedEvent
    | GuardrailFailedEvent
    | StepCompletedEvent
    | StepRestartedEvent
    | StepFailedEvent
    | StepSimulatedEvent
    | TaskStartedEvent
    | TaskCompletedEvent
    | TaskSkippedEvent
    | TaskFaultedEvent
    | TaskCaughtEvent
    | EventsOmittedEvent
    | ChildStartedEvent
    | ChildCompletedEvent
    | ApprovalRequestedEvent
    | ApprovalDecidedEvent
    | ApprovalEscalatedEvent
    | ApprovalUnassignedEvent
    | RunCancelRequestedEvent
    | RunCompletedEvent
    | RunFailedEvent
    | RunCancelledEvent
    | OtherRunEvent
)

#: The body of an event, the same at every attempt.
WebhookEvent: TypeAlias = (
    RunFinishedWebhookEvent
    | ImprovementPassFinishedWebhookEvent
    | ApprovalRequestedWebhookEvent
    | TestWebhookEvent
    | OtherWebhookEvent
)

StepCompletedData: TypeAlias = (
    ModelStepAnswer
    | ToolStepAnswer
    | ChildStepAnswer
    | ApprovalStepAnswer
    | GuardrailStepAnswer
    | HttpStepAnswer
    | SimulatedStepAnswer
    | WaitStepAnswer
    | OtherStepCompletedData
)

#: What a caller of ``runs.follow`` gets.
RunStreamEvent: TypeAlias = (
    RunCreatedEvent
    | RunRetriedEvent
    | RunStartedEvent
    | RunWaitingEvent
    | StepStartedEvent
    | ContextTrimmedEvent
    | GuardrailDecidedEvent
    | GuardrailFailedEvent
    | StepCompletedEvent
    | StepRestartedEvent
    | StepFailedEvent
    | StepSimulatedEvent
    | TaskStartedEvent
    | TaskCompletedEvent
    | TaskSkippedEvent
    | TaskFaultedEvent
    | TaskCaughtEvent
    | EventsOmittedEvent
    | ChildStartedEvent
    | ChildCompletedEvent
    | ApprovalRequestedEvent
    | ApprovalDecidedEvent
    | ApprovalEscalatedEvent
    | ApprovalUnassignedEvent
    | RunCancelRequestedEvent
    | RunCompletedEvent
    | RunFailedEvent
    | RunCancelledEvent
    | TextDeltaEvent
    | ReasoningDeltaEvent
    | OtherRunEvent
)

#: What a caller of ``changes.follow`` gets.
ChangeStreamEvent: TypeAlias = ChangedEvent | OtherChangeStreamEvent

#: What a caller of ``approvals.follow`` gets.
ApprovalStreamEvent: TypeAlias = ApprovalEvent | StreamStartEvent

#: Makes a record of one of several classes, by the name of what it is one of.
MAKERS: Mapping[str, Callable[[Any], Any]] = {
    "Way": union_of(
        "kind",
        {
            "direct": DirectWay,
            "tenant-admin": TenantAdminWay,
            "org-admin": OrgAdminWay,
            "team": TeamWay,
        },
        OtherWay,
    ),
    "RunEvent": union_of(
        "kind",
        {
            "run.created": RunCreatedEvent,
            "run.retried": RunRetriedEvent,
            "run.started": RunStartedEvent,
            "run.waiting": RunWaitingEvent,
            "step.started": StepStartedEvent,
            "context.trimmed": ContextTrimmedEvent,
            "guardrail.decided": GuardrailDecidedEvent,
            "guardrail.failed": GuardrailFailedEvent,
            "step.completed": StepCompletedEvent,
            "step.restarted": StepRestartedEvent,
            "step.failed": StepFailedEvent,
            "step.simulated": StepSimulatedEvent,
            "task.started": TaskStartedEvent,
            "task.completed": TaskCompletedEvent,
            "task.skipped": TaskSkippedEvent,
            "task.faulted": TaskFaultedEvent,
            "task.caught": TaskCaughtEvent,
            "events.omitted": EventsOmittedEvent,
            "child.started": ChildStartedEvent,
            "child.completed": ChildCompletedEvent,
            "approval.requested": ApprovalRequestedEvent,
            "approval.decided": ApprovalDecidedEvent,
            "approval.escalated": ApprovalEscalatedEvent,
            "approval.unassigned": ApprovalUnassignedEvent,
            "run.cancelRequested": RunCancelRequestedEvent,
            "run.completed": RunCompletedEvent,
            "run.failed": RunFailedEvent,
            "run.cancelled": RunCancelledEvent,
        },
        OtherRunEvent,
    ),
    "WebhookEvent": union_of(
        "type",
        {
            "run.finished": RunFinishedWebhookEvent,
            "improvement-pass.finished": ImprovementPassFinishedWebhookEvent,
            "approval.requested": ApprovalRequestedWebhookEvent,
            "webhook.test": TestWebhookEvent,
        },
        OtherWebhookEvent,
    ),
    "StepCompletedData": fitting(
        OtherStepCompletedData,
        (ModelStepAnswer, {"type": ("model",)}),
        (ToolStepAnswer, {"type": ("tool",)}),
        (ChildStepAnswer, {"type": ("child",)}),
        (ApprovalStepAnswer, {"type": ("approval",)}),
        (GuardrailStepAnswer, {"type": ("guardrail",)}),
        (HttpStepAnswer, {"type": ("http",)}),
        (SimulatedStepAnswer, {"type": ("tool", "http", "child", "guardrail",)}),
        (WaitStepAnswer, {"type": ("wait",)}),
    ),
    "RunStreamEvent": union_of(
        "kind",
        {
            "run.created": RunCreatedEvent,
            "run.retried": RunRetriedEvent,
            "run.started": RunStartedEvent,
            "run.waiting": RunWaitingEvent,
            "step.started": StepStartedEvent,
            "context.trimmed": ContextTrimmedEvent,
            "guardrail.decided": GuardrailDecidedEvent,
            "guardrail.failed": GuardrailFailedEvent,
            "step.completed": StepCompletedEvent,
            "step.restarted": StepRestartedEvent,
            "step.failed": StepFailedEvent,
            "step.simulated": StepSimulatedEvent,
            "task.started": TaskStartedEvent,
            "task.completed": TaskCompletedEvent,
            "task.skipped": TaskSkippedEvent,
            "task.faulted": TaskFaultedEvent,
            "task.caught": TaskCaughtEvent,
            "events.omitted": EventsOmittedEvent,
            "child.started": ChildStartedEvent,
            "child.completed": ChildCompletedEvent,
            "approval.requested": ApprovalRequestedEvent,
            "approval.decided": ApprovalDecidedEvent,
            "approval.escalated": ApprovalEscalatedEvent,
            "approval.unassigned": ApprovalUnassignedEvent,
            "run.cancelRequested": RunCancelRequestedEvent,
            "run.completed": RunCompletedEvent,
            "run.failed": RunFailedEvent,
            "run.cancelled": RunCancelledEvent,
            "text.delta": TextDeltaEvent,
            "reasoning.delta": ReasoningDeltaEvent,
        },
        OtherRunEvent,
    ),
    "ChangeStreamEvent": union_of(
        "kind",
        {
            "changed": ChangedEvent,
        },
        OtherChangeStreamEvent,
    ),
    "ApprovalStreamEvent": union_of(
        "kind",
        {
            "stream.start": StreamStartEvent,
            "approval.waiting": ApprovalEvent,
            "approval.assigned": ApprovalEvent,
            "approval.closed": ApprovalEvent,
        },
        ApprovalEvent,
    ),
}
