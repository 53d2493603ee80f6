// From the API description: clients/generate writes this file.

/** A person to add. */
export interface NewUser {
  /** It names the person whatever its case. */
  email: string;
  displayName: string;
  tenantRole: TenantRole;
}

/**
 * A role in the tenant.
 *
 * - `member`: Reads what belongs to the tenant as a whole.
 * - `admin`: Decides about everything in the tenant.
 */
export type TenantRole = "member" | "admin" | (string & {});

/** A person who was added. */
export interface AddedPerson {
  id: string;
  /** As it was given. The seed user has none. */
  email?: string | null;
  displayName: string;
  tenantRole: TenantRole;
  /** Who added the person. The seed user was added by nobody, and so was whom an identity provider added. */
  createdBy?: string | null;
  createdAt: string;
  deactivatedAt?: string | null;
  enrolment: Enrolment;
}

/** A code that its person turns into a first key. */
export interface Enrolment {
  /** The code itself: shown here, and never again. */
  code: string;
  expiresAt: string;
}

/**
 * Whether a user may do anything.
 *
 * - `active`: They may.
 * - `deactivated`: They were deactivated.
 */
export type UserStatus = "active" | "deactivated" | (string & {});

/**
 * The direction of a list.
 *
 * - `asc`: Oldest first.
 * - `desc`: Newest first.
 */
export type Order = "asc" | "desc" | (string & {});

/** A page of a list. */
export interface PersonPage {
  /** The rows. */
  data: Person[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A person. */
export interface Person {
  id: string;
  /** As it was given. The seed user has none. */
  email?: string | null;
  displayName: string;
  tenantRole: TenantRole;
  /** Who added the person. The seed user was added by nobody, and so was whom an identity provider added. */
  createdBy?: string | null;
  createdAt: string;
  deactivatedAt?: string | null;
}

/** What to change of a person. */
export interface ChangeUser {
  displayName?: string | null;
  tenantRole?: TenantRole | null;
}

/** A code to take. */
export interface TakeEnrolment {
  /** The code, as it was shown. */
  code: string;
  /** What the key is to be called; `first key`, if left out. */
  name?: string | null;
}

/** A bearer token that was minted. */
export interface MintedToken {
  id: string;
  name: string;
  /** The last four characters of the token. */
  lastFour: string;
  /** The token came with the tenant. */
  seed: boolean;
  createdAt: string;
  expiresAt?: string | null;
  /** When it was last used: to the minute, and up to an hour old, since a further use within an hour is not written. */
  lastUsedAt?: string | null;
  role: KeyRole;
  capabilities: Capability[];
  /** The one project that the token is limited to. */
  projectId?: string | null;
  /** The token itself: shown here, and never again. */
  token: string;
}

/**
 * The role of a key.
 *
 * - `member`: What its owner may as a member of the tenant, and by roles in orgs, teams and projects.
 * - `admin`: Whatever its owner may.
 */
export type KeyRole = "member" | "admin" | (string & {});

/**
 * A kind of write that a key takes part in only if it says so.
 *
 * - `access:write`: Change who may do what.
 * - `env:write`: Change environments.
 * - `keys:write`: Mint keys, and revoke others than itself.
 * - `secrets:write`: Put and delete secrets.
 */
export type Capability = "access:write" | "env:write" | "keys:write" | "secrets:write" | (string & {});

/** The ways in. */
export interface SignInWays {
  /** The server's address as browsers see it, where it is set. */
  publicUrl?: string | null;
  /**
   * The tenant that the rest is about: the one that was asked for, or the only one. Null: there are several, and
   * `tenantId` names one.
   */
  tenantId?: string | null;
  /** The identity providers by which one may sign in. */
  providers: SignInProvider[];
  /** Who may sign in with a bearer token of their own. */
  tokenSignIn: TokenSignInSetting;
  /** In development the console logs in by itself. */
  developmentLogin: boolean;
  /** Why nobody can sign in by this request's address; null if they can. */
  problem?: SignInProblem | null;
}

/** An identity provider to sign in by. */
export interface SignInProvider {
  id: string;
  name: string;
}

/**
 * Who may sign in with a bearer token of their own.
 *
 * - `on`: Everybody.
 * - `admins`: Tenant admins.
 * - `off`: Nobody.
 */
export type TokenSignInSetting = "on" | "admins" | "off" | (string & {});

/**
 * Why nobody can sign in by this request's address.
 *
 * - `not-configured`: The server does not know its own address (`SVC_PUBLIC_URL`).
 * - `other-address`: The server is to be opened at its own address.
 */
export type SignInProblem = "not-configured" | "other-address" | (string & {});

/** A bearer token to sign in with. */
export interface TokenToSignInWith {
  /** The token. It is kept nowhere. */
  token: string;
}

/** An enrolment code to sign in with. */
export interface CodeToSignInWith {
  /** The code, as it was shown. */
  code: string;
}

/** What is left to do for whoever signed out. */
export interface SignedOut {
  /**
   * The page of the identity provider at which one signs out there, too. Null: the session came by none, or the provider
   * has no such page, or is away.
   */
  providerSignOutUrl?: string | null;
}

/** Who the caller is. */
export interface Me {
  id: string;
  tenantId: string;
  kind: PrincipalKind;
  /** As it was given. The seed user and service accounts have none. */
  email?: string | null;
  displayName: string;
  tenantRole: TenantRole;
  reviewerRoles: string[];
  /** The caller is in a team. */
  inTeam: boolean;
  credential: RequestCredential;
}

/**
 * What kind of principal somebody is.
 *
 * - `user`: A person.
 * - `service-account`: A service account.
 */
export type PrincipalKind = "user" | "service-account" | (string & {});

/** The credential of the request. */
export interface RequestCredential {
  kind: CredentialKind;
  id: string;
  /** When it ends at the latest. */
  expiresAt?: string | null;
  /** What it may do at most, whatever its owner may. */
  role: KeyRole;
  capabilities: Capability[];
  /** The one project that it is limited to. */
  projectId?: string | null;
}

/**
 * What a request came with.
 *
 * - `token`: A bearer token.
 * - `session`: The session of a browser.
 */
export type CredentialKind = "token" | "session" | (string & {});

/** A page of a list. */
export interface SessionPage {
  /** The rows. */
  data: Session[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A session. */
export interface Session {
  id: string;
  /** How the person signed in. */
  method: Method;
  /** It is the session of the request. */
  current: boolean;
  /** The address from which the person signed in: behind a proxy, the proxy's. */
  clientAddress: string;
  /** What the browser called itself then. */
  userAgent?: string | null;
  createdAt: string;
  /** When it was used last, to the minute. */
  activeAt: string;
  /** When it ends at the latest. */
  expiresAt: string;
}

/**
 * How a person signed in.
 *
 * - `token`: With a bearer token.
 * - `enrolment`: With an enrolment code.
 * - `development`: With the token that the server hands to the console in development.
 * - `provider`: Through an identity provider.
 */
export type Method = "token" | "enrolment" | "development" | "provider" | (string & {});

/** A page of a list. */
export interface IdentityPage {
  /** The rows. */
  data: Identity[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** Whom a person is at an identity provider. */
export interface Identity {
  id: string;
  identityProviderId: string;
  /** What the provider is called. */
  providerName: string;
  /** What the provider calls the person, for good. */
  subject: string;
  /** The email by which it was bound. It counts no more. */
  emailThen: string;
  boundAt: string;
  lastUsedAt: string;
}

/** An identity provider to register. */
export interface NewIdentityProvider {
  /** What the sign-in page calls it; unique in the tenant. */
  name: string;
  /** The issuer, byte for byte as its own document names it: https, without a query. It cannot be changed. */
  issuer: string;
  /** What the provider calls this server. */
  clientId: string;
  /** The secret that goes with it; none for a public client. */
  clientSecretRef?: SecretRef | null;
  /** Scopes beside `openid`, `email` and `profile`. */
  scopes?: string[];
  /**
   * The email domains that it speaks for, which no other provider of the tenant does. In ASCII form (`xn--…`). An email
   * of another domain signs nobody in for the first time.
   */
  emailDomains?: string[];
  /**
   * `provider` takes its word for every email, also where it does not say that it verified it: only where nobody chooses
   * an email of their own there.
   */
  emailTrust?: EmailTrust;
  /** Whether somebody whom nobody added becomes a member by signing in. */
  createsPeople?: boolean;
  /** The claim that has a person's groups. None: groups are not asked for. */
  groupsClaim?: string | null;
  /** What its groups are here. It needs a `groupsClaim`. */
  groups?: IdentityProviderGroup[];
}

/** Which secret. */
export interface SecretRef {
  /** The environment that it belongs to. */
  envName: string;
  /** Its name in the environment. */
  name: string;
}

/**
 * When a provider's email counts.
 *
 * - `claim`: When the provider says that it verified it.
 * - `provider`: Always: at this provider nobody chooses an email of their own.
 */
export type EmailTrust = "claim" | "provider" | (string & {});

/** A group of the provider, and what its members are here. */
export interface IdentityProviderGroup {
  /** As the provider's claim names it. */
  group: string;
  /** The team. */
  teamId: string;
  /** The role in the team. */
  role: TeamRole;
}

/**
 * A role in a team.
 *
 * - `admin`: Decides who is in it.
 * - `member`: Has the roles that the team has.
 */
export type TeamRole = "admin" | "member" | (string & {});

/** An identity provider. */
export interface IdentityProvider {
  id: string;
  /** Who keeps it. */
  managedBy: IdentityProviderManager;
  /**
   * Whether people sign in by it. While the operator keeps providers in a file, those that the tenant registered do
   * not serve.
   */
  serves: boolean;
  name: string;
  issuer: string;
  clientId: string;
  /** None: a public client, or the operator has it in a file. */
  clientSecretRef?: SecretRef | null;
  scopes: string[];
  emailDomains: string[];
  emailTrust: EmailTrust;
  createsPeople: boolean;
  groupsClaim?: string | null;
  groups: IdentityProviderGroup[];
  /**
   * When somebody last signed in without the claim of groups, who has not signed in with it since: their teams stayed as
   * they were. Let the provider put the claim into the ID token or userinfo, also where the person is in no group; some
   * providers take a scope for it. Null: there is nobody, or the provider was changed here since.
   */
  groupsAbsentAt?: string | null;
  /**
   * The same where the provider left the groups out, because the person is in more than it names (500 count at most). Let
   * it name only those that are registered here.
   */
  groupsLeftOutAt?: string | null;
  /**
   * What to register at the provider as the address to come back to. Null: the server has no address
   * (`SVC_PUBLIC_URL`).
   */
  callbackUrl?: string | null;
  createdBy?: string | null;
  createdAt: string;
  updatedAt: string;
}

/**
 * Who keeps an identity provider.
 *
 * - `tenant`: The tenant's admins.
 * - `operator`: The operator, in a file.
 */
export type IdentityProviderManager = "tenant" | "operator" | (string & {});

/** A page of a list. */
export interface IdentityProviderPage {
  /** The rows. */
  data: IdentityProvider[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** What to change of an identity provider. */
export interface ChangeIdentityProvider {
  name?: string | null;
  clientId?: string | null;
  /** Null: a public client. */
  clientSecretRef?: SecretRef | null;
  scopes?: string[] | null;
  emailDomains?: string[] | null;
  emailTrust?: EmailTrust | null;
  createsPeople?: boolean | null;
  /** Null: groups are not asked for, and the memberships that they gave end. */
  groupsClaim?: string | null;
  /** A team that none of them stands for any more loses the members that they gave. */
  groups?: IdentityProviderGroup[] | null;
}

/** What a provider's check found. */
export interface IdentityProviderCheck {
  /** Whether every step is well. */
  ok: boolean;
  /** In the order of a sign-in. */
  steps: IdentityProviderStep[];
}

/** What a step found. */
export interface IdentityProviderStep {
  /** `discovery`, `issuer`, `endpoints`, `keys`, `algorithms`, `pkce`, `clock` or `callback`. */
  step: string;
  /** Whether a sign-in passes it. Null: it could not be looked at, because one before it failed. */
  ok?: boolean | null;
  /** What was found, in a sentence. */
  value: string;
  /** What to do, in a sentence, if it is not well. */
  whatToDo?: string | null;
}

/** How people of the tenant sign in. */
export interface SignInSettings {
  /** What the tenant sets. */
  tokenSignIn: TokenSignInSetting;
  /** What the tenant sets; null: as the server says. */
  sessionIdleMinutes?: number | null;
  /** What the tenant sets; null: as the server says. */
  sessionHours?: number | null;
  /** What counts: the stricter of the tenant's and the server's. */
  effective: EffectiveSignInSettings;
  /** Who keeps identity providers and these settings. */
  managedBy: IdentityProviderManager;
  changedBy?: string | null;
  changedAt?: string | null;
}

/** What counts. */
export interface EffectiveSignInSettings {
  tokenSignIn: TokenSignInSetting;
  sessionIdleMinutes: number;
  sessionHours: number;
}

/** What to set. It replaces what stands. */
export interface NewSignInSettings {
  /**
   * It also ends the open sessions that came from tokens which it refuses. Anything narrower than before takes an admin of
   * the tenant who has signed in through an identity provider within 24 hours.
   */
  tokenSignIn: TokenSignInSetting;
  /**
   * After so many minutes without use a session ends, open ones as well: no more than the server's
   * (`SVC_SESSION_IDLE_MINUTES`). Null: as the server says.
   */
  sessionIdleMinutes?: number | null;
  /**
   * After so many hours a session ends, open ones as well: no more than the server's (`SVC_SESSION_HOURS`). Null: as the
   * server says.
   */
  sessionHours?: number | null;
}

/** Who the caller is, and what each role allows. */
export interface Permissions {
  tenantId: string;
  userId: string;
  kind: PrincipalKind;
  key: KeyLimits;
  tenantRole: TenantRole;
  reviewerRoles: string[];
  /** The caller is in a team. */
  inTeam: boolean;
  /** That the server's license ends within 30 days, or has ended, and what to do. For tenant admins alone. */
  licenseWarning?: string | null;
  /** Every role of the tenant, of orgs, of teams and of projects, and the caller's own reviewer roles. */
  roles: RolePermissions[];
}

/** The key of the request. */
export interface KeyLimits {
  id: string;
  role: KeyRole;
  capabilities: Capability[];
  /** The one project that the key is limited to. */
  projectId?: string | null;
}

/** What a role allows. */
export interface RolePermissions {
  /** What it is a role in: `tenant`, `org`, `team` or `project`; of a reviewer role `reviewer`. */
  scope: string;
  role: string;
  /**
   * The actions on each kind of object; what belongs to the tenant as a whole is of kind `tenant`. A reviewer role allows
   * actions on approvals that require it.
   */
  allows: Record<string, AccessAction[]>;
}

/**
 * What one may do, each including the ones before it.
 *
 * - `read`: See it.
 * - `write`: Work in it.
 * - `admin`: Decide about it.
 */
export type AccessAction = "read" | "write" | "admin" | (string & {});

/** The roles of a user. */
export interface Grants {
  userId: string;
  kind: PrincipalKind;
  /**
   * Absent for a user who was deactivated. An admin is an admin of every project, those that are
   * not listed included.
   */
  tenantRole?: TenantRole | null;
  /** Of more than 1,000, the first. */
  orgs: OrgGrant[];
  orgsHasMore: boolean;
  /** Of more than 1,000, the first. */
  teams: TeamRoleGrant[];
  teamsHasMore: boolean;
  /** A page of them, each with every way in. */
  projects: ProjectGrant[];
  reviewerRoles: string[];
  /** More projects follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** An org that the user is an admin of. */
export interface OrgGrant {
  orgId: string;
  orgName: string;
}

/** A team that the user is in. */
export interface TeamRoleGrant {
  teamId: string;
  teamName: string;
  role: TeamRole;
}

/** A project that the user has ways into. */
export interface ProjectGrant {
  projectId: string;
  projectName: string;
  /** The highest role that any way gives. */
  role: Role;
  via: Way[];
}

/**
 * A role on a project, the highest first.
 *
 * - `owner`: Also an admin. A person's role only.
 * - `admin`: Changes the project and who works in it.
 * - `editor`: Works in it.
 * - `viewer`: Reads it.
 * - `member`: What older rows hold. It grants what `viewer` grants, and is given no more.
 */
export type Role = "owner" | "admin" | "editor" | "viewer" | "member" | (string & {});

/** A way into a project. A later server may send others: go by `kind`. */
export type Way = DirectWay | TenantAdminWay | OrgAdminWay | TeamWay;

/** A service account to add, or its new name: no other active one of the tenant has it. */
export interface ServiceAccountName {
  name: string;
}

/** A service account. */
export interface ServiceAccount {
  id: string;
  name: string;
  createdBy?: string | null;
  createdAt: string;
  deactivatedAt?: string | null;
}

/** A page of a list. */
export interface ServiceAccountPage {
  /** The rows. */
  data: ServiceAccount[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/**
 * A bearer token to mint. What is left out is as the token has it that mints this one. With
 * authorization on, nothing goes beyond it.
 */
export interface NewToken {
  name: string;
  /** Not above the owner's role in the tenant. */
  role?: KeyRole | null;
  capabilities?: Capability[] | null;
  /** The one project that the token is limited to. */
  projectId?: string | null;
  /** When the token ends by itself. */
  expiresAt?: string | null;
}

/** A page of a list. */
export interface TokenPage {
  /** The rows. */
  data: Token[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A bearer token, without its secret part. */
export interface Token {
  id: string;
  name: string;
  /** The last four characters of the token. */
  lastFour: string;
  /** The token came with the tenant. */
  seed: boolean;
  createdAt: string;
  expiresAt?: string | null;
  /** When it was last used: to the minute, and up to an hour old, since a further use within an hour is not written. */
  lastUsedAt?: string | null;
  role: KeyRole;
  capabilities: Capability[];
  /** The one project that the token is limited to. */
  projectId?: string | null;
}

/** A public run token to mint. */
export interface NewPublicToken {
  /** The runs that it opens. */
  runIds: string[];
  /** How long it lives, in seconds. */
  expiresInSeconds?: number | null;
}

/** A public run token that was minted. */
export interface MintedPublicToken {
  /** The token itself. */
  token: string;
  expiresAt: string;
}

/** An org to make, or its new name: no other org of the tenant has it. */
export interface OrgName {
  name: string;
}

/** An org. */
export interface Org {
  id: string;
  name: string;
  createdBy: string;
  createdAt: string;
  updatedAt: string;
}

/** A page of a list. */
export interface OrgPage {
  /** The rows. */
  data: Org[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A person to make an admin: by id or by email. */
export interface AddOrgAdmin {
  userId?: string | null;
  /** In any case. */
  email?: string | null;
}

/** An admin of an org. */
export interface OrgAdmin {
  orgId: string;
  userId: string;
  displayName: string;
  primaryEmail?: string | null;
  joinedAt: string;
}

/** A page of a list. */
export interface OrgAdminPage {
  /** The rows. */
  data: OrgAdmin[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A project to make in an org. */
export interface NewOrgProject {
  name: string;
}

/** A project. */
export interface Project {
  id: string;
  name: string;
  createdBy: string;
  createdAt: string;
  updatedAt: string;
  /** Since when it is archived; null while it is not. */
  archivedAt?: string | null;
}

/** A role to give a person, who is named by id or by email. */
export interface RegisterReviewer {
  userId?: string | null;
  /** In any case. */
  email?: string | null;
  /** Such as `standard`: 1 to 40 lowercase letters, digits and hyphens, no hyphen first. */
  role: string;
}

/** A person with reviewer roles. */
export interface Reviewer {
  userId: string;
  displayName: string;
  primaryEmail?: string | null;
  /** In the order of their texts. */
  roles: string[];
}

/** A page of a list. */
export interface ReviewerPage {
  /** The rows. */
  data: Reviewer[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A project to make, or a project's new name. */
export interface ProjectName {
  name: string;
}

/** A page of a list. */
export interface ProjectPage {
  /** The rows. */
  data: Project[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** Somebody to add: by id, or a person by email. */
export interface AddMembership {
  userId?: string | null;
  /** Of one of the tenant's people, in any case. */
  email?: string | null;
  role: "owner" | "admin" | "editor" | "viewer";
}

/** Somebody's membership of a project. */
export interface Membership {
  projectId: string;
  userId: string;
  kind: PrincipalKind;
  displayName: string;
  /** A person's email; for the project's admins alone. */
  primaryEmail?: string | null;
  role: Role;
  joinedAt: string;
  /** Since when the user can do nothing any more, whatever their role. */
  deactivatedAt?: string | null;
}

/** A page of a list. */
export interface MembershipPage {
  /** The rows. */
  data: Membership[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A member's new role. */
export interface ChangeMembership {
  role: "owner" | "admin" | "editor" | "viewer";
}

/** A team, and the role to give it. */
export interface NewTeamGrant {
  teamId: string;
  role: "admin" | "editor" | "viewer";
}

/** A team's role on a project. */
export interface TeamGrant {
  projectId: string;
  projectName: string;
  teamId: string;
  teamName: string;
  role: "admin" | "editor" | "viewer" | (string & {});
  createdBy: string;
  createdAt: string;
  updatedAt: string;
}

/** A page of a list. */
export interface TeamGrantPage {
  /** The rows. */
  data: TeamGrant[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A team's new role. */
export interface ChangeTeamGrant {
  role: "admin" | "editor" | "viewer";
}

/** A page of a list. */
export interface AccessEntryPage {
  /** The rows. */
  data: AccessEntry[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** Somebody with access to a project. */
export interface AccessEntry {
  principal: Principal;
  displayName: string;
  /** A person's email; for the project's admins alone. */
  primaryEmail?: string | null;
  /** The highest role that a way in gives. */
  role: Role;
  /** Every way in. */
  via: Way[];
}

/** Who it is. */
export interface Principal {
  kind: PrincipalKind;
  id: string;
}

/** A team to make. */
export interface NewTeam {
  name: string;
  /** Unique in the tenant. It stays when the team is renamed. */
  slug: string;
  description?: string | null;
}

/** A team. */
export interface Team {
  id: string;
  name: string;
  slug: string;
  description?: string | null;
  createdBy: string;
  createdAt: string;
  updatedAt: string;
}

/** A page of a list. */
export interface TeamPage {
  /** The rows. */
  data: Team[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** What to change of a team. */
export interface ChangeTeam {
  name?: string | null;
  description?: string | null;
}

/** Somebody to add: by id, or a person by email. */
export interface AddTeamMembership {
  userId?: string | null;
  /** Of one of the tenant's people, in any case. */
  email?: string | null;
  role: TeamRole;
}

/** Somebody's membership of a team. */
export interface TeamMembership {
  teamId: string;
  userId: string;
  kind: PrincipalKind;
  displayName: string;
  role: TeamRole;
  joinedAt: string;
  /** The identity provider whose groups gave it, and take it away; absent: somebody gave it. */
  identityProviderId?: string | null;
  /** Since when the user can do nothing any more, whatever their role. */
  deactivatedAt?: string | null;
}

/** A page of a list. */
export interface TeamMembershipPage {
  /** The rows. */
  data: TeamMembership[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** The new role of somebody in a team. */
export interface ChangeTeamMembership {
  role: TeamRole;
}

/** A secret to put. */
export interface PutSecret {
  /** 1 to 65536 bytes of UTF-8 without NUL. It is never shown again. */
  value: string;
}

/** A secret, without its value. */
export interface Secret {
  environment: string;
  name: string;
  /** The version that stands. */
  version: number;
  createdAt: string;
  updatedAt: string;
  /** Who put it first; null in env files, which do not say. */
  createdBy?: string | null;
  /** The versions that are kept, the newest first: the one that stands and the one before it. */
  versions: SecretVersion[];
}

/** A version of a secret. */
export interface SecretVersion {
  version: number;
  createdAt: string;
  /** Until when it still signs webhooks, beside the version that stands. */
  expiresAt?: string | null;
}

/** A page of a list. */
export interface SecretPage {
  /** The rows. */
  data: Secret[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A use to create. */
export interface NewSecretUse {
  /** The secret's name. It need not be there yet. */
  name: string;
  /** `origin:` and the scheme, host and port of the HTTP servers that may get it. */
  target: string;
  /** For this project alone; left out: for every project. */
  projectId?: string | null;
}

/** A use of a secret. */
export interface SecretUse {
  id: string;
  /** The secret's name, in every environment. */
  name: string;
  /** Where it may be sent, such as `origin:https://api.example.com`. */
  target: string;
  /** For this project alone; null: for every project. */
  projectId?: string | null;
  createdBy: string;
  createdAt: string;
}

/** A page of a list. */
export interface SecretUsePage {
  /** The rows. */
  data: SecretUse[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface EnvironmentPage {
  /** The rows. */
  data: Environment[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** An environment: a variable, a secret or the server's setting names it. */
export interface Environment {
  name: string;
  /** It is the one that the server serves (`SVC_ENVIRONMENT`): flows read its variables, and tools get its secrets. */
  isServed: boolean;
}

/** A page of a list. */
export interface VariablePage {
  /** The rows. */
  data: Variable[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A variable. */
export interface Variable {
  environment: string;
  name: string;
  value: string;
  /** Who put it first. */
  createdBy: string;
  createdAt: string;
  /** Who put it last. */
  updatedBy: string;
  updatedAt: string;
}

/** A variable to put. */
export interface PutVariable {
  /** At most 32768 bytes of UTF-8 without NUL. Every member of the tenant can read it. */
  value: string;
}

/** A policy, in its newest version. */
export interface Policy {
  /** Its number, from 1; 0: no version was put yet. */
  version: number;
  /** Its guardrails, in the order in which they judge. */
  guardrails: Guardrail[];
  /** When readers of a stream see text that a guardrail of the policy judges at `output`. */
  streaming: GuardrailStreaming;
  /** Who put it; null: nobody yet. */
  createdBy?: string | null;
  /** When it was put; null: not yet. */
  createdAt?: string | null;
}

/** A check of what goes into a run or comes out of it. */
export interface Guardrail {
  /** What it looks for. */
  builtin: BuiltInGuardrail;
  /** What it is called in records and by those who are told of a verdict; the name of what it looks for if absent. */
  name?: string | null;
  /** Where it stands, each place once. */
  at: GuardrailPoint[];
  /** What becomes of what it finds. */
  action: GuardrailAction;
  /** What it looks for in particular. */
  config?: GuardrailConfig;
  /** What becomes of what it blocks. If absent, the run fails at `input` and `output`, and the model is told at the others. */
  onBlock?: GuardrailOnBlock | null;
  /** With `onBlock` `answer`: the text. */
  answer?: string | null;
  /** With `onBlock` `retry`: how often the model is asked again; once if absent. */
  retries?: number | null;
  /** What becomes of a text if the check itself fails. */
  onError?: GuardrailOnError;
  /** With `action` `approve`: what a reviewer is asked. A tool that asks for an approval itself gets that one for both. */
  approval?: ToolApproval | null;
}

/**
 * What a check looks for.
 *
 * - `pattern`: Texts that match patterns of the author, or match none.
 * - `pii`: Personal data that has a form of its own.
 * - `secrets`: Credentials, by their form.
 * - `tool-arguments`: Arguments of calls that do not fit a schema.
 * - `links`: Links to hosts that are not listed.
 * - `hidden-text`: Characters that a reader does not see and a model reads.
 */
export type BuiltInGuardrail =
  | "pattern"
  | "pii"
  | "secrets"
  | "tool-arguments"
  | "links"
  | "hidden-text"
  | (string & {});

/**
 * Where a check stands.
 *
 * - `input`: What the run is asked, before a model is.
 * - `tool.arguments`: The arguments of a call, before the tool gets them.
 * - `tool.result`: What a tool answers, before the model reads it.
 * - `output`: Each text that a model writes.
 */
export type GuardrailPoint = "input" | "tool.arguments" | "tool.result" | "output" | (string & {});

/**
 * What becomes of what a check finds.
 *
 * - `block`: It goes no further: see `onBlock`.
 * - `redact`: Its kind stands in its place, in brackets.
 * - `approve`: A reviewer decides on the call, at `tool.arguments` alone.
 */
export type GuardrailAction = "block" | "redact" | "approve" | (string & {});

/** What a check looks for in particular. Each kind of check has its own fields. */
export interface GuardrailConfig {
  /** `pattern`: regular expressions that take linear time, as the crate regex of Rust reads them. */
  patterns?: string[] | null;
  /** `pattern`: a text that matches none is found, whole. Otherwise what matches is. */
  mustMatch?: boolean | null;
  /** `pii`: which kinds; all if absent. */
  kinds?: PersonalData[] | null;
  /** `links`: the hosts that links may have, `example.com`, or `*.example.com` for those below it. None if absent. */
  hosts?: string[] | null;
  /** `tool-arguments`: the name of the tool; every tool if absent. */
  tool?: string | null;
  /** `tool-arguments`: the JSON Schema that arguments fit. */
  schema?: Record<string, any> | null;
}

/**
 * Personal data that has a form of its own. Names and addresses have none: they take a model.
 *
 * - `email`: An address of email.
 * - `phone`: A telephone number.
 * - `card`: The number of a payment card.
 * - `iban`: The number of a bank account.
 * - `ip`: An address of a computer.
 */
export type PersonalData = "email" | "phone" | "card" | "iban" | "ip" | (string & {});

/**
 * What becomes of what a check blocks.
 *
 * - `fail`: The run fails.
 * - `answer`: The run is completed with `answer`, at `input` and `output`.
 * - `tell`: The model is told, at `tool.arguments` and `tool.result`.
 * - `retry`: The model is asked again, `retries` times at most, at `output`; then the run fails.
 */
export type GuardrailOnBlock = "fail" | "answer" | "tell" | "retry" | (string & {});

/**
 * What becomes of a text if its check fails.
 *
 * - `block`: It is blocked.
 * - `allow-unsafely`: It goes on unchecked.
 */
export type GuardrailOnError = "block" | "allow-unsafely" | (string & {});

/** What each call of a tool asks a reviewer before it is made. */
export interface ToolApproval {
  /** What a reviewer reads first. Webhooks are told it too, so it says nothing of a single call. */
  title?: string;
  /** The reviewer role that may decide. */
  requiredRole?: string;
  /**
   * Whom each approval is assigned to, by id or email address: a person with the role. If the person is not active or lacks
   * the role when it is opened, it is nobody's. Others with the role may decide all the same.
   */
  assignedTo?: string | null;
  /** How long the call waits, as an ISO 8601 duration such as `PT8H`: 30 days at most. Nobody's silence approves it. */
  expiresAfter?: string;
  /** Who is asked in the place of the role if nobody has decided: one at most. */
  escalation?: ToolEscalation[];
  /** What becomes of a call that is rejected or that nobody decides in time. */
  onReject?: OnReject;
}

/** Who is asked if nobody has decided. */
export interface ToolEscalation {
  /** When, counted from the opening, as an ISO 8601 duration shorter than `expiresAfter`. */
  after: string;
  /** The reviewer role that may decide then. */
  requiredRole: string;
  /** Whom the approval in its place is assigned to, by id or email address. */
  assignedTo?: string | null;
}

/**
 * What becomes of a call that nobody approves.
 *
 * - `tell`: The model is told, with the reviewer's comment, and the turn goes on.
 * - `fail`: The turn fails.
 */
export type OnReject = "tell" | "fail" | (string & {});

/**
 * When readers of a stream see text that a check at `output` applies to.
 *
 * - `held`: After the verdict.
 * - `unchecked`: As the model writes it, before the verdict.
 */
export type GuardrailStreaming = "held" | "unchecked" | (string & {});

/** A policy to put. It takes the place of the one that stands, as a whole. */
export interface PutPolicy {
  /** Checks of what goes into runs and what comes out, in the order in which they judge. An empty list: none. */
  guardrails: Guardrail[];
  /** When readers of a stream see text that a guardrail of the policy judges at `output`. Left out: after the verdict. */
  streaming?: GuardrailStreaming;
  /**
   * The version that was read before, 0 if there was none: if another one is the newest, nothing changes and the answer is
   * `conflict`. Left out: whichever is the newest.
   */
  expectedVersion?: number | null;
}

/** A text, and what is to judge it. */
export interface TryGuardrails {
  /** The project whose policy applies, after the tenant's. */
  projectId: string;
  /** Where the text would stand. */
  point: GuardrailPoint;
  /** At most 1 MiB of UTF-8 without NUL; at `tool.arguments` JSON. */
  text: string;
  /** At `tool.arguments` and `tool.result`: the tool. */
  tool?: string | null;
  /** Guardrails that judge after the policies', as those of an agent's version. */
  guardrails?: Guardrail[];
  /** False: the policies that stand do not judge. */
  withPolicies?: boolean;
}

/** What guardrails make of a text. */
export interface TriedGuardrails {
  /** What the checks came to: a block counts more than an approval, and that more than a redaction. */
  verdict: TriedVerdict;
  /** The text that goes on; left out if it was blocked. */
  text?: string | null;
  /** The guardrail that blocked it; left out if none did. */
  blockedBy?: string | null;
  /** Each check that was made, in order. None is made after a block. */
  checks: TriedCheck[];
}

/**
 * What the checks of a text come to.
 *
 * - `allow`: It goes on as it is.
 * - `block`: It goes no further.
 * - `redact`: It goes on with something replaced.
 * - `approve`: A reviewer decides on the call.
 */
export type TriedVerdict = "allow" | "block" | "redact" | "approve" | (string & {});

/** A check that was made of a text. */
export interface TriedCheck {
  /** The guardrail's name. */
  name: string;
  /** Whose it is; `agent` for one that the request gave. */
  origin: GuardrailOrigin;
  /** The version of the policy; null for a guardrail that the request gave. */
  policyVersion?: number | null;
  /** What judged, such as `builtin:pii`. */
  evaluator: string;
  verdict: GuardrailVerdict;
  /** What was found, in a word; `failed` if the check itself failed; null if nothing was found. */
  code?: string | null;
  /** What was found, or why the check failed, in a sentence that never quotes the text; null if nothing was found. */
  reason?: string | null;
  /** Of a check that failed: what becomes of the text. Otherwise null. */
  onError?: GuardrailOnError | null;
  /** Microseconds that it took. */
  durationUs: number;
}

/**
 * Whose a check is.
 *
 * - `tenant`: The tenant's.
 * - `project`: The project's.
 * - `agent`: Of the agent's version, or of the task of a flow.
 */
export type GuardrailOrigin = "tenant" | "project" | "agent" | (string & {});

/**
 * What a check decided.
 *
 * - `allow`: Nothing was found.
 * - `block`: What was found goes no further.
 * - `redact`: What was found was replaced.
 * - `approve`: A reviewer decides.
 * - `failed`: The check itself failed: see `onError`.
 */
export type GuardrailVerdict = "allow" | "block" | "redact" | "approve" | "failed" | (string & {});

/** A model provider to register. */
export interface NewModelProvider {
  /** Unique in the tenant. */
  name: string;
  /** Where its OpenAI-compatible API begins; usually ends in `/v1`. */
  baseUrl: string;
  /** The name of a key that the operator listed for the base URL's origin (`SVC_MODEL_KEYS`). */
  apiKeyName?: string | null;
  /**
   * The secret that is its key, read for each call; not beside `apiKeyName`. It goes to the base
   * URL.
   */
  apiKeySecretRef?: SecretRef | null;
  /** How it is asked. */
  serverOptions?: ModelProviderOptions;
  models: Model[];
}

/** How a provider's server is asked. */
export interface ModelProviderOptions {
  /** Time limits of a call. */
  timeouts?: ModelTimeouts;
  /** How often a call that may pass is tried in all; 4 by default. */
  tries?: number | null;
  /**
   * Calls at once at most; further ones wait in order, without a thread and without being counted as slow. No bound by
   * default.
   */
  callsAtOnce?: number | null;
  /** Headers of each request. */
  headers?: ModelProviderHeader[];
  /** The header that has the API key, such as Azure's `api-key`, in place of `Authorization: Bearer`. */
  keyHeader?: string | null;
  /** Sent as the query parameter `api-version`, which Azure asks for. */
  apiVersion?: string | null;
  /** What the server does not take, or wants in another way. */
  quirks?: ModelQuirk[];
}

/** Time limits of a call, in milliseconds. What is absent is the service's own. */
export interface ModelTimeouts {
  /**
   * From the request to the first byte of the answer; 120000 by default. A server that says that it loads its model is
   * waited for as long in all.
   */
  firstByteMs?: number | null;
  /** Between two bytes of the answer; 120000 by default. Comments and pings count. */
  idleMs?: number | null;
  /** The whole call; 600000 by default. */
  callMs?: number | null;
}

/** A header of each request to a provider. */
export interface ModelProviderHeader {
  /** Its name. */
  name: string;
  /** Its value; or `keyName` says which it is. */
  value?: string | null;
  /** The name of one of the operator's keys (`SVC_MODEL_KEYS`), which is its value. */
  keyName?: string | null;
}

/**
 * What a server does not take, or wants in another way. The service finds out most of them by itself, by a call that is
 * refused.
 *
 * - `no-stream-options`: It refuses `stream_options`.
 * - `no-streaming`: It does not stream.
 * - `no-parallel-tool-calls`: It refuses `parallel_tool_calls`.
 * - `no-tool-choice`: It refuses `tool_choice`.
 * - `no-strict`: It refuses `strict`.
 * - `no-null-content`: It refuses a message whose `content` is null.
 * - `no-system-role`: It has no system role: the instructions stand before the first message of the user.
 * - `no-json-schema`: It refuses `response_format` of type `json_schema`: it is asked for `json_object`.
 * - `no-response-format`: It refuses every `response_format`: it is asked in words.
 * - `max-completion-tokens`: It takes `max_completion_tokens` in place of `max_tokens`.
 * - `no-temperature`: It takes its own default of `temperature` alone.
 * - `no-top-p`: It refuses `top_p`.
 * - `no-penalties`: It refuses `presence_penalty` or `frequency_penalty`.
 * - `no-seed`: It refuses `seed`.
 * - `no-reasoning-effort`: It refuses `reasoning_effort`.
 * - `no-kept`: It refuses fields of its own messages that it is handed back, such as its reasoning.
 */
export type ModelQuirk =
  | "no-stream-options"
  | "no-streaming"
  | "no-parallel-tool-calls"
  | "no-tool-choice"
  | "no-strict"
  | "no-null-content"
  | "no-system-role"
  | "no-json-schema"
  | "no-response-format"
  | "max-completion-tokens"
  | "no-temperature"
  | "no-top-p"
  | "no-penalties"
  | "no-seed"
  | "no-reasoning-effort"
  | "no-kept"
  | (string & {});

/** A model. */
export interface Model {
  /** The provider's name of it. */
  name: string;
  /**
   * How many tokens it takes, prompt and answer together. With it, the oldest exchanges of a
   * conversation are left out of a prompt that would not fit.
   */
  contextWindow?: number | null;
  prices?: Prices;
}

/**
 * What a model costs, in US dollars per million tokens. Cache tokens are part of the prompt,
 * reasoning tokens part of the completion: a part without a price costs what its whole costs.
 */
export interface Prices {
  prompt?: number | null;
  completion?: number | null;
  cacheRead?: number | null;
  cacheWrite?: number | null;
  reasoning?: number | null;
}

/** A model provider. */
export interface ModelProvider {
  id: string;
  name: string;
  baseUrl: string;
  apiKeyName?: string | null;
  apiKeySecretRef?: SecretRef | null;
  /** How it is asked. */
  serverOptions: ModelProviderOptions;
  /** By name. */
  models: Model[];
  createdBy: string;
  createdAt: string;
  updatedAt: string;
  /**
   * Its newest calls, where they failed: none has gone well since. For tenant admins alone, where a provider is read; of
   * the last 24 hours, and of the newest 500 calls of the tenant.
   */
  failing?: FailingCalls | null;
}

/** Calls of a model provider that failed, with none that went well since. */
export interface FailingCalls {
  /** How many. */
  calls: number;
  /** When the first of them had failed. */
  firstAt: string;
  /** When the last of them had. */
  lastAt: string;
  /** Why the last one failed; null if it was erased. */
  failure?: string | null;
}

/** A page of a list. */
export interface ModelProviderPage {
  /** The rows. */
  data: ModelProvider[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** What to change of a model provider. */
export interface ChangeModelProvider {
  name?: string | null;
  baseUrl?: string | null;
  /** Null: it takes no key. */
  apiKeyName?: string | null;
  /** Null: it takes no secret. */
  apiKeySecretRef?: SecretRef | null;
  /** They replace those that stand. */
  serverOptions?: ModelProviderOptions | null;
  models?: Model[] | null;
}

/** What is asked. */
export interface CheckModelProvider {
  /** One of the provider's models; the first by name if absent. */
  model?: string | null;
}

/** What a provider's check found. */
export interface ModelProviderCheck {
  /** Whether the model answers. The other steps say which agents it can serve. */
  ok: boolean;
  /** The model that was asked. */
  model: string;
  /** The models that the server lists, 500 at most; none where it lists none. */
  listed: string[];
  /** In the order in which they were looked at. */
  steps: ModelProviderStep[];
}

/** What a step found. */
export interface ModelProviderStep {
  /** `models`, `answer`, `streaming`, `usage`, `tools` or `outputSchema`. */
  step: string;
  /** Whether it is as an agent needs it. Null: it could not be looked at. */
  ok?: boolean | null;
  /** What was found, in a sentence. */
  value: string;
  /** What to do, in a sentence, if it is not well. */
  whatToDo?: string | null;
}

/** A tool to register: with a `url`, an `agent` or a `flow`, whichever it calls. */
export interface NewTool {
  projectId: string;
  /** What the model calls it by: letters, digits, `_` and `-`; unique in the project. */
  name: string;
  /** What the model is told of it. */
  description: string;
  /**
   * The JSON Schema of the arguments object: 64 KiB at most, with references into itself alone. Its fields keep their order.
   * Of a flow, left out: `input.schema` of the version that it would run now. Of an agent it is left out: that takes a
   * `message`.
   */
  argumentsSchema?: Record<string, any> | null;
  /** Of an HTTP server: where it is called, with POST. */
  url?: string | null;
  /** A call is a turn of this agent, without a conversation, in a run below the caller's. */
  agent?: NewToolAgent | null;
  /** A call is a run of this flow below the caller's. */
  flow?: NewToolFlow | null;
  /** Of an HTTP server: how long a call may take. */
  timeoutMs?: number | null;
  /** Of an HTTP server: it may be called again when a crash or a lost connection leaves it open whether it was called. */
  idempotent?: boolean;
  /**
   * Of an HTTP server: what a dry run does with a call. Say `call` only of a tool that changes nothing while `dryRun` of its
   * call is true. Nobody is asked for an approval in a dry run.
   */
  dryRun?: ToolDryRun | null;
  /**
   * Of an HTTP server: headers of each call whose values are secrets. Each needs a use for the origin of `url` and the project
   * (`/v1/secret-uses`). A tenant admin with a key that has `secrets:write` creates missing uses with the tool.
   */
  headers?: ToolHeader[];
  /** Of an HTTP server: the name of the secret that signs each call, as Standard Webhooks says. It needs a use, too. */
  signingSecret?: string | null;
  /** Each call waits until a reviewer has approved it. */
  approval?: ToolApproval | null;
}

/** The agent that a tool is to call. */
export interface NewToolAgent {
  /** An agent of the tool's project. */
  id: string;
  /** Its version; left out: the live one, else the latest, each time that a run is taken up which calls the tool. */
  version?: string | null;
}

/** The flow that a tool is to call. */
export interface NewToolFlow {
  /** `namespace.name` of a flow of the tool's project. */
  flowId: string;
  /** Its version; left out: the live one, else the latest, each time that a run is taken up which calls the tool. */
  version?: string | null;
}

/**
 * What a dry run does with a call of an HTTP server.
 *
 * - `call`: Makes it: it says that the run is dry, and the tool is to change nothing.
 * - `simulate`: Does not make it. An agent's model is told so; a flow goes by a fixture or its definition.
 */
export type ToolDryRun = "call" | "simulate" | (string & {});

/** A header of each call whose value is a secret. */
export interface ToolHeader {
  /** Its name: not one that the service sends itself, such as `Content-Type`, and none that a proxy takes for itself. */
  name: string;
  /** The name of the secret, found under the environment that the server serves (`SVC_ENVIRONMENT`). */
  secret: string;
  /** What stands before the value, such as `Bearer ` with its space. */
  prefix?: string | null;
}

/** A tool. */
export interface Tool {
  id: string;
  projectId: string;
  name: string;
  description: string;
  /** What the model is told to fit its arguments to. */
  argumentsSchema: Record<string, any>;
  /** What its calls go to. */
  target: TargetKind;
  /** Of an HTTP server, else null. */
  url?: string | null;
  /** Of an HTTP server, else null. */
  timeoutMs?: number | null;
  /** Of an HTTP server; false of others, whose calls are begun once. */
  idempotent: boolean;
  /** Of an HTTP server, else null: the runs that others begin are dry themselves. */
  dryRun?: ToolDryRun | null;
  /** Of an agent, else null. */
  agent?: ToolAgent | null;
  /** Of a flow, else null. */
  flow?: ToolFlow | null;
  headers: ToolHeader[];
  signingSecret?: string | null;
  /** What each call asks a reviewer before it is made; null: nothing. */
  approval?: ToolApproval | null;
  createdBy: string;
  createdAt: string;
}

/**
 * What calls of a tool go to, by its name. What follows from it is decided in [`Target`](super::turns::Target), and in
 * matches that name each.
 *
 * - `http`: An HTTP server.
 * - `agent`: An agent: a call is a turn in a run below the caller's.
 * - `flow`: A flow: a call is a run below the caller's.
 */
export type TargetKind = "http" | "agent" | "flow" | (string & {});

/** The agent that a tool calls. */
export interface ToolAgent {
  id: string;
  /** Null: the live one, else the latest. */
  version?: string | null;
}

/** The flow that a tool calls. */
export interface ToolFlow {
  flowId: string;
  /** Null: the live one, else the latest. */
  version?: string | null;
}

/** A page of a list. */
export interface ToolPage {
  /** The rows. */
  data: Tool[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** An agent to register. */
export interface NewAgent {
  projectId: string;
  /** Unique in the project. */
  name: string;
  description?: string | null;
}

/** An agent. */
export interface Agent {
  id: string;
  projectId: string;
  name: string;
  description: string;
  /** The highest version; a release is above every pre-release. Null until one is made. */
  latestVersion?: string | null;
  /** The version that was promoted for the project; null while none is. */
  liveVersion?: string | null;
  createdBy: string;
  createdAt: string;
  updatedAt: string;
  /** Since when the agent is archived; null while it is not. Its project may be archived, too. */
  archivedAt?: string | null;
}

/** A page of a list. */
export interface AgentPage {
  /** The rows. */
  data: Agent[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** What to change of an agent. */
export interface ChangeAgent {
  name?: string | null;
  description?: string | null;
}

/** A version of an agent to make. */
export interface NewAgentVersion {
  /** Left out: 0.1.0, or what follows the latest (the next patch; of a pre-release, its release). */
  version?: string | null;
  /** What the model is told first. */
  instructions: string;
  modelProviderId: string;
  /** One of the provider's models. */
  model: string;
  parameters?: ModelParameters;
  /** Tools of the agent's project that the model may call. */
  toolIds?: string[];
  limits?: Limits;
  /**
   * The JSON Schema that the answer of a turn fits: an object, 64 KiB at most, with references into itself alone. A
   * model whose answer does not fit is told why and asked again, twice at most; then the turn fails. Left out: an answer is text.
   */
  outputSchema?: Record<string, any> | null;
  /** What a run may set in place of the version's own, with `overrides` at its start. Left out: nothing. */
  overrides?: Override[];
  /** Checks of what goes into a turn and what comes out, in this order, after those of the tenant's and the project's policies. */
  guardrails?: Guardrail[];
  /** When readers of a stream see text that a guardrail of the version judges at `output`. Left out: after the verdict. */
  streaming?: GuardrailStreaming;
}

/** How a model is to answer. What is absent is left to the provider. */
export interface ModelParameters {
  /** Sampling temperature. */
  temperature?: number | null;
  /** Nucleus sampling. */
  topP?: number | null;
  /**
   * The longest answer, in tokens. Sent as `max_tokens`, which most servers know, or as `max_completion_tokens` to those
   * that want it.
   */
  maxTokens?: number | null;
  /** Texts that end the answer. */
  stop?: string[];
  /** A seed for repeatable sampling. */
  seed?: number | null;
  /** How much the model thinks before it answers: `low`, `medium` or `high`; some servers know others. */
  reasoningEffort?: string | null;
  /**
   * Whether the model calls tools: `auto`, `none`, `required`, or the name of the one that it calls. `required` and a name
   * hold until the turn has called a tool; then the model may answer.
   */
  toolChoice?: string | null;
  /** Whether the model may call several tools at once. */
  parallelToolCalls?: boolean | null;
  /** Above 0: the model repeats subjects less. */
  presencePenalty?: number | null;
  /** Above 0: the model repeats words less. */
  frequencyPenalty?: number | null;
  /** Further fields of the request, passed on as they are; a null takes a field out. */
  extra?: Record<string, any>;
}

/** The limits of an agent's version. */
export interface Limits {
  /** Steps of a turn at most, model and tool calls together. */
  maxSteps?: number;
  /** Milliseconds that a turn may take, waits included. */
  turnTimeoutMs?: number;
  /** Tokens that one model call may write; the provider's own limit if absent. */
  maxOutputTokens?: number | null;
  /** Whether the model is told of the calls of tools in the earlier turns of a conversation, and of their results. */
  historyCalls?: boolean;
}

/**
 * What a version may let a run set in place of its own.
 *
 * - `model`: The model and its provider.
 * - `parameters`: Parameters for the model.
 * - `limits`: Limits of a turn.
 */
export type Override = "model" | "parameters" | "limits" | (string & {});

/** A version of an agent. */
export interface AgentVersion {
  agentId: string;
  version: string;
  instructions: string;
  modelProviderId: string;
  model: string;
  parameters: ModelParameters;
  toolIds: string[];
  limits: Limits;
  /** The JSON Schema that the answer of a turn fits; null: an answer is text. */
  outputSchema?: Record<string, any> | null;
  /** What a run may set in place of the version's own. */
  overrides: Override[];
  /** The version's own guardrails, which judge after those of the tenant's and the project's policies. */
  guardrails: Guardrail[];
  /** When readers of a stream see text that a guardrail of the version judges at `output`. */
  streaming: GuardrailStreaming;
  createdBy: string;
  createdAt: string;
}

/** A page of a list. */
export interface ListedAgentVersionPage {
  /** The rows. */
  data: ListedAgentVersion[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A version in a list: read it for what it says. */
export interface ListedAgentVersion {
  agentId: string;
  version: string;
  modelProviderId: string;
  model: string;
  createdBy: string;
  createdAt: string;
}

/** The version to be live. */
export interface Promotion {
  /** Null: none is live. */
  version: string | null;
}

/** A definition, and the project that it is for. */
export interface NewFlow {
  projectId: string;
  /** In the Open Workflow DSL 1.0, as far as it is taken. */
  definition: Record<string, any>;
}

/** What was found in a definition. */
export interface CheckedFlow {
  /** It has no faults. */
  valid: boolean;
  /** Null where a fault hides it. */
  flowId?: string | null;
  /** Null where a fault hides it. */
  version?: string | null;
  /** What is wrong, at most 20. */
  faults: FlowFault[];
  /** What is probably not meant, at most 20. */
  warnings: FlowFault[];
  /** Null where a fault hides it. */
  graph?: FlowNode | null;
}

/** What is wrong with a definition, or probably not meant. */
export interface FlowFault {
  /** Where in the definition, a JSON path: `$.do[2].small.switch[0].yes.then`. */
  path: string;
  /** What kind of fault, such as `unknown-field`. */
  code: string;
  /** One sentence. */
  message: string;
  /** Which characters of the text at `path` are wrong. */
  span?: FlowFaultSpan | null;
  /** What to write instead. */
  hint?: string | null;
}

/** A part of a text, in Unicode code points. */
export interface FlowFaultSpan {
  /** The first one, from 0. */
  start: number;
  /** The first one after it. */
  end: number;
}

/** A flow, a list of tasks, or a task. */
export interface FlowNode {
  /** Its place in the definition, a JSON pointer, such as `/do/2/small`. A run's events and steps have the same path. */
  path: string;
  /** The name of the task; of the flow its id; of a list the field that has it. */
  name: string;
  /** What it is. */
  type: FlowNodeType;
  /** The tool, the agent or the flow that it calls by name, the title of the approval. */
  target?: string | null;
  /** What stands in it. The first one is where it begins, except in a `fork`, whose branches begin together. */
  children: FlowNode[];
  /** What leads from one of the children to another, in order. */
  edges: FlowEdge[];
}

/**
 * What a node is.
 *
 * - `flow`: The whole flow.
 * - `list`: A list of a `try`: what is tried, or what handles an error.
 * - `do`: A list of tasks.
 * - `set`: Answers a value.
 * - `switch`: Chooses what follows.
 * - `for`: A list for each item.
 * - `fork`: Branches beside each other.
 * - `try`: A list whose errors are handled.
 * - `raise`: Raises an error.
 * - `wait`: Waits.
 * - `http`: An HTTP request.
 * - `agent`: A turn of an agent.
 * - `tool`: A call of a tool.
 * - `approval`: A person's decision.
 * - `guardrail`: Guardrails judge a text.
 * - `run`: Another flow.
 */
export type FlowNodeType =
  | "flow"
  | "list"
  | "do"
  | "set"
  | "switch"
  | "for"
  | "fork"
  | "try"
  | "raise"
  | "wait"
  | "http"
  | "agent"
  | "tool"
  | "approval"
  | "guardrail"
  | "run"
  | (string & {});

/** What leads from a node to one beside it, or out of the list. */
export interface FlowEdge {
  /** The name of the node from which it leads. */
  from: string;
  /** The name of the node to which it leads; `exit`: out of the list; `end`: to the end of the run. */
  to: string;
  /** The case of a `switch` that leads there; `catch`: after a handled error; `skipped`: if the task's `if` is false. */
  label?: string | null;
}

/** A flow that was registered. */
export interface RegisteredFlow {
  id: string;
  projectId: string;
  /** `namespace.name` of its definitions; unique in the project. */
  flowId: string;
  /** Begins as the title of the first definition, cut after 200 characters. */
  title: string;
  /** Begins as the summary of the first definition. */
  description: string;
  /** The highest version; a release is above every pre-release. */
  latestVersion?: string | null;
  /** The version that was promoted for the project; null while none is. */
  liveVersion?: string | null;
  createdBy: string;
  createdAt: string;
  updatedAt: string;
  /** Since when the flow is archived; null while it is not. Its project may be archived, too. */
  archivedAt?: string | null;
  /** What in its definition is probably not meant, at most 20. */
  warnings: FlowFault[];
}

/** A page of a list. */
export interface FlowPage {
  /** The rows. */
  data: Flow[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A flow. */
export interface Flow {
  id: string;
  projectId: string;
  /** `namespace.name` of its definitions; unique in the project. */
  flowId: string;
  /** Begins as the title of the first definition, cut after 200 characters. */
  title: string;
  /** Begins as the summary of the first definition. */
  description: string;
  /** The highest version; a release is above every pre-release. */
  latestVersion?: string | null;
  /** The version that was promoted for the project; null while none is. */
  liveVersion?: string | null;
  createdBy: string;
  createdAt: string;
  updatedAt: string;
  /** Since when the flow is archived; null while it is not. Its project may be archived, too. */
  archivedAt?: string | null;
}

/** What to change of a flow. */
export interface ChangeFlow {
  title?: string | null;
  description?: string | null;
}

/** A version of a flow to make. */
export interface NewFlowVersion {
  /** Its `document` names the flow, and the version. */
  definition: Record<string, any>;
}

/** A version of a flow that was made. */
export interface MadeFlowVersion {
  flowId: string;
  version: string;
  /** As its author wrote it. */
  definition: Record<string, any>;
  /** SHA-256 of the definition in hexadecimal digits, whatever the order of its keys. */
  digest: string;
  createdBy: string;
  createdAt: string;
  /** What in its definition is probably not meant, at most 20. */
  warnings: FlowFault[];
}

/** A page of a list. */
export interface ListedFlowVersionPage {
  /** The rows. */
  data: ListedFlowVersion[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A version in a list: read it for what it says. */
export interface ListedFlowVersion {
  version: string;
  createdBy: string;
  createdAt: string;
}

/** A version of a flow. */
export interface FlowVersion {
  flowId: string;
  version: string;
  /** As its author wrote it. */
  definition: Record<string, any>;
  /** SHA-256 of the definition in hexadecimal digits, whatever the order of its keys. */
  digest: string;
  createdBy: string;
  createdAt: string;
}

/** A conversation to begin. */
export interface NewConversation {
  agentId: string;
  /** The version that its turns are to run; left out: the live one, else the latest, at each turn. */
  version?: string | null;
  title?: string | null;
}

/** A conversation. */
export interface Conversation {
  id: string;
  projectId: string;
  agentId: string;
  /** The version that its turns run, if it was begun with one. */
  version?: string | null;
  title: string;
  /** The turn that is under way: there is one at a time. */
  activeRunId?: string | null;
  createdBy: string;
  createdAt: string;
  /** When it was asked to be erased; null unless it was. No run starts in it since. */
  erasureRequestedAt?: string | null;
  /** When all of it was erased; null until then. */
  erasedAt?: string | null;
  /** True if its newest message is an answer that was cut at its maximum length; left out otherwise. In a list alone. */
  answerCut?: boolean | null;
}

/** A page of a list. */
export interface ConversationPage {
  /** The rows. */
  data: Conversation[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface ConversationMessagePage {
  /** The rows. */
  data: ConversationMessage[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A message of a conversation. */
export interface ConversationMessage {
  /** Its number in the conversation, from 1. */
  position: number;
  /** `user` or `assistant`. */
  role: string;
  content: string;
  /** The turn in which it was said. */
  runId: string;
  createdAt: string;
}

/** A turn to start. */
export interface StartRun {
  agentId: string;
  /** The agent's version; left out: the conversation's own, else the live one, else the latest. */
  version?: string | null;
  /** The conversation to continue; left out: the turn stands alone. */
  conversationId?: string | null;
  /** What the user says, 1 MiB at most. */
  message: string;
  /** Changes nothing: the model is asked, but a tool is called only if it says so (its `dryRun`), and is told; of other calls the model is told that they were simulated. */
  dryRun?: boolean;
  /** Keys and values of the caller's own, by which lists find the run: 16 at most. Whoever may read the run reads them. */
  labels?: Record<string, string>;
  /**
   * What the run sets in place of its version's own; refused unless the version allows it. A retry keeps it; runs below it do
   * not have it.
   */
  overrides?: RunOverrides | null;
}

/**
 * What a run sets in place of its version's own. A field that is left out stays as the version has it, also of parameters and
 * limits. The version's `overrides` says what a run may set: `model` stands for `modelProviderId` and `model`.
 */
export interface RunOverrides {
  /** The provider of the model. Left out: the version's. */
  modelProviderId?: string | null;
  /** One of the provider's models. Left out: the version's. */
  model?: string | null;
  parameters?: ModelParameters;
  limits?: RunLimits;
}

/** Limits that a run sets, each in place of its version's. */
export interface RunLimits {
  /** Steps of the turn at most, model and tool calls together. */
  maxSteps?: number | null;
  /** Milliseconds that the turn may take, waits included. */
  turnTimeoutMs?: number | null;
  /** Tokens that one model call may write. */
  maxOutputTokens?: number | null;
  /** Whether the model is told of the calls of tools in the earlier turns of a conversation, and of their results. */
  historyCalls?: boolean | null;
}

/** A run of a flow to start. */
export interface StartFlow {
  /** `namespace.name`. */
  flowId: string;
  /** The flow's version; left out: the live one, else the latest. */
  flowVersion?: string | null;
  /** The flow's project, where several have a flow of this id. */
  projectId?: string | null;
  /** What the flow is given: it has to fit `input.schema` of its definition. Left out: an empty object. */
  input?: any;
  /** Evaluates everything and changes nothing: calls are made only if they read alone, or if they are of a tool that says so (its `dryRun`). */
  dryRun?: boolean;
  /** Of a dry run: what steps answer, which are not performed then. By the JSON pointer of the step's task, as events have it in `path`; that of a flow which this one runs has the flow's id before it, as in `billing.pay/do/0/charge`. 500 at most, of 256 KiB of JSON together. */
  fixtures?: Record<string, any>;
  /** Of a dry run: whether agents' turns ask their models. With `skip` no turn is begun: the step answers as one that is not performed. */
  models?: DryRunModels;
  /** Keys and values of the caller's own, by which lists find the run: 16 at most. Whoever may read the run reads them. */
  labels?: Record<string, string>;
}

/**
 * Whether a dry run asks models.
 *
 * - `call`: It does.
 * - `skip`: It does not: agents' turns are not begun.
 */
export type DryRunModels = "call" | "skip" | (string & {});

/** A run that was started. */
export interface StartedRun {
  run: Run;
  /** Lets a browser follow the run; null where public run tokens are off. */
  publicToken?: MintedPublicToken | null;
}

/** A run. */
export interface Run {
  /** The run. */
  id: string;
  /** Its project. */
  projectId: string;
  /** `agent.turn` for an agent's turn. */
  flowId: string;
  /** The version of the flow. */
  flowVersion: string;
  /** Where it stands. */
  status: Status;
  /** As the caller said. */
  dryRun: boolean;
  /**
   * Why it failed; null unless it did. In a webhook event and in a list it names the task, the status and the error's title,
   * and quotes no data of the run; the run itself has the whole message.
   */
  failureMessage?: string | null;
  /** When it was created. */
  createdAt: string;
  /** When it ended; null until it has. */
  completedAt?: string | null;
  /** What its model calls used. */
  usage?: Usage;
  /** Only on an agent's turn. */
  agent?: RunAgent | null;
  startedAt?: string | null;
  /** Who began it: an app, the command line, or another run. */
  origin: Origin;
  /** The run that began it; left out of a run that an app or the command line began. */
  parentRunId?: string | null;
  /** The number of its child runs, without those below them. A retry counts those that it takes over. In a list alone. */
  childCount?: number | null;
  /** Which branch of a fork, or iteration of a parallel loop, of its parent it is; left out of any other run. In a list alone. */
  branch?: RunBranch | null;
  /** The failed run that it takes up. */
  retryOf?: string | null;
  createdBy: string;
  /** What it waits for; only while it waits. */
  waitingFor?: WaitingFor | null;
  /** As the caller gave them at the start. */
  labels: Record<string, string>;
  /**
   * What it sets in place of its agent's version; left out where it sets nothing, and once its payload was erased. Where one
   * run is read, but not with its public token.
   */
  overrides?: RunOverrides | null;
  /** Somebody asked it to end. */
  cancelRequested: boolean;
  /** The number of its newest event. */
  lastSeq: number;
  /** When what it was given, said and answered was erased; only then. */
  payloadErasedAt?: string | null;
}

/**
 * Where a run stands. The last three are finished.
 *
 * - `queued`: Nobody has taken it yet.
 * - `running`: Somebody carries it on, or did until a crash.
 * - `waiting`: It will be taken up again at a time that is set.
 * - `completed`: Finished with an output.
 * - `failed`: Finished with a failure message.
 * - `cancelled`: Finished because somebody asked.
 */
export type Status = "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled" | (string & {});

/** What a run's model calls used. */
export interface Usage {
  /** Model calls, failed and lost ones included. */
  calls: number;
  /** US dollars; a call without a price counts as 0. */
  costUsd: number;
  /** Tokens by kind. */
  tokens: Tokens;
}

/** Tokens by kind. Cache tokens are part of `prompt`, reasoning tokens part of `completion`. */
export interface Tokens {
  /** What the model read. */
  prompt: number;
  /** What it wrote. */
  completion: number;
  /** Of the prompt: read from a cache. */
  cacheRead: number;
  /** Of the prompt: written to a cache. */
  cacheWrite: number;
  /** Of the completion: reasoning. */
  reasoning: number;
}

/** The agent of a turn. */
export interface RunAgent {
  /** The agent. */
  id: string;
  /** The version that runs. */
  version: string;
  /** The conversation that the turn belongs to. */
  conversationId?: string | null;
  /** How the version was chosen. */
  via: Via;
}

/**
 * How a turn's version was chosen.
 *
 * - `latest`: No version is live for the run's scope.
 * - `live`: The version live for its scope.
 * - `explicit`: The caller named it.
 * - `conversation`: The conversation's own.
 */
export type Via = "latest" | "live" | "explicit" | "conversation" | (string & {});

/**
 * Who began a run.
 *
 * - `app`: An app, through the API.
 * - `command-line`: A person, through the command line.
 * - `run`: Another run.
 */
export type Origin = "app" | "command-line" | "run" | (string & {});

/** A branch of a fork, or an iteration of a parallel loop. */
export interface RunBranch {
  /** The task of the flow that has the branches or iterations. */
  path: string;
  /** Which of them, from 0. */
  index: number;
}

/**
 * What a run waits for.
 *
 * - `retry`: Another attempt of a step that failed.
 * - `timer`: A time that its program named.
 * - `approval`: A decision of a reviewer.
 * - `children`: The end of a child run.
 * - `model`: A call that its model provider takes: others make as many as it takes at once.
 */
export type WaitingFor = "retry" | "timer" | "approval" | "children" | "model" | (string & {});

/** A page of a list. */
export interface RunPage {
  /** The rows. */
  data: Run[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** What a run was given, and what it answered. */
export interface Payload {
  /** What the run was given: a turn's `message`; null once it was erased. */
  input: any;
  /** What it answered: a turn's `text`, and `json`, the same as a value, if the agent's version has an output schema; null until it is completed, and once it was erased. */
  output?: any;
  /** Of a dry run that was started with fixtures: those. */
  fixtures?: Record<string, any> | null;
  /** Of a dry run that was started so as not to ask models: `skip`. */
  models?: DryRunModels | null;
  /** When all was erased; only then. */
  erasedAt?: string | null;
}

/** A page of a list. */
export interface RunStepPage {
  /** The rows. */
  data: RunStep[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A step of a run. */
export interface RunStep {
  /** Its number, from 1. */
  step: number;
  kind: StepKind;
  /** The model's or the tool's name. */
  name: string;
  /** Where it stands in the run's flow; left out in an agent's turn. */
  path: string;
  status: StepStatus;
  /** What it came to: a completed step may have failed. Null while it is under way, and for a call whose answer was erased. */
  outcome?: StepOutcome | null;
  /** The newest attempt, from 1. */
  attempt: number;
  /**
   * What it answered; null until it is completed, and once it was erased. Of an approval, what everybody may know who may
   * read the run: `decision` and `approvalId`. Of a model, its `reasoning` too, if it gave any.
   */
  result?: any;
  /** When the newest attempt began. */
  startedAt: string;
  /** When it ended. */
  completedAt?: string | null;
}

/**
 * What a step is.
 *
 * - `model`: A call of a model.
 * - `tool`: A call of a tool.
 * - `http`: An HTTP request.
 * - `wait`: A wait for a time.
 * - `child`: Child runs, until they have ended.
 * - `approval`: An approval, until it is closed.
 * - `guardrail`: Guardrails that judge a text.
 */
export type StepKind = "model" | "tool" | "http" | "wait" | "child" | "approval" | "guardrail" | (string & {});

/**
 * Where a step stands.
 *
 * - `running`: Under way, or was when its process died.
 * - `completed`: Done; never done again.
 * - `failed`: Its newest attempt failed.
 */
export type StepStatus = "running" | "completed" | "failed" | (string & {});

/**
 * What a step came to.
 *
 * - `succeeded`: It did what it was begun for.
 * - `failed`: A call was answered with an error or was not made, or a run that it began did not complete.
 * - `unknown`: A call may have taken effect: nobody got its answer.
 * - `refused`: Its approval was not given.
 */
export type StepOutcome = "succeeded" | "failed" | "unknown" | "refused" | (string & {});

/** A run and a page of its events. */
export interface Progress {
  run: Run;
  /** The events, in order. */
  data: RunEvent[];
  /** More events stand already: ask again with `after` the last number. */
  hasMore: boolean;
}

/** An event of a run, as clients read it. A later server may send others: go by `kind`. */
export type RunEvent =
  | RunCreatedEvent
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
  | RunCancelledEvent;

/** An attempt of a step. */
export interface StepRef {
  /** Its number in the run, from 1. */
  step: number;
  /** The attempt, from 1. */
  attempt: number;
  /** What the step does. */
  type: StepKind;
  /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
  name: string;
  /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
  path?: string;
  /** For a tool that a model calls, its run and its approval: the model's id of the call. */
  callId?: string | null;
  /** True once what was said was erased: texts are empty then. */
  erased?: boolean;
}

/** A call that a model asks for. */
export interface ToolCall {
  /** The model's id of the call. */
  id: string;
  /** The tool's name, as the model wrote it. */
  name: string;
  /** The arguments as the model wrote them: JSON text, if it did well. */
  arguments: string;
}

/** What a provider counted in one call. */
export interface TokenCounts {
  /** What the model read. */
  prompt?: number | null;
  /** What it wrote. */
  completion?: number | null;
  /** Of the prompt: read from a cache. */
  cacheRead?: number | null;
  /** Of the prompt: written to a cache. */
  cacheWrite?: number | null;
  /** Of the completion: reasoning. */
  reasoning?: number | null;
}

/** How a child run ended. */
export interface ChildEnd {
  /** The child. */
  runId: string;
  /** `completed`, `failed` or `cancelled`. */
  status: string;
}

/**
 * How an approval stands.
 *
 * - `waiting`: Nobody has decided.
 * - `approved`: A reviewer agreed.
 * - `rejected`: A reviewer refused.
 * - `escalated`: Another approval took its place.
 * - `expired`: Its time was over before anybody decided.
 * - `voided`: Its run ended before.
 */
export type ApprovalStatus =
  | "waiting"
  | "approved"
  | "rejected"
  | "escalated"
  | "expired"
  | "voided"
  | (string & {});

/**
 * What guardrails decided of a text.
 *
 * - `allow`: It goes on as it is.
 * - `block`: It goes no further.
 * - `redact`: What was found in it was replaced.
 */
export type TextVerdict = "allow" | "block" | "redact" | (string & {});

/** A task of a flow. */
export interface TaskRef {
  /** Its JSON pointer in the definition. */
  path: string;
  /** What it is. */
  type: FlowNodeType;
  /** In a loop: the iteration, from 0. */
  iteration?: number | null;
}

/** Text that a model is writing. */
export interface TextDelta {
  /** The step whose text it is. */
  step: number;
  /** The attempt of the step. Text of an earlier attempt is void. */
  attempt: number;
  /** How many characters of the attempt's text stand before it. */
  offset: number;
  /** The characters. */
  text: string;
}

/** Reasoning of a model, while it thinks. Not for readers with a public token. */
export interface ReasoningDelta {
  /** The step whose reasoning it is. */
  step: number;
  /** The attempt of the step. Reasoning of an earlier attempt is void. */
  attempt: number;
  /** How many characters of the attempt's reasoning stand before it. */
  offset: number;
  /** The characters. */
  text: string;
}

/** A page of a list. */
export interface RunCheckPage {
  /** The rows. */
  data: RunCheck[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A check that a guardrail made of a run. */
export interface RunCheck {
  /** The step that it belongs to. */
  step: number;
  /** Its attempt, from 1. */
  attempt: number;
  /** Which of the attempt's checks, from 0. */
  ordinal: number;
  point: GuardrailPoint;
  /** At `tool.arguments`: which of the calls of the model's answer, from 0. Otherwise null. */
  call?: number | null;
  /** The guardrail's name. */
  name: string;
  /** What judged, such as `builtin:pii`. */
  evaluator: string;
  origin: GuardrailOrigin;
  /** The version of the tenant's or the project's policy; null for a guardrail of the agent's version. */
  policyVersion?: number | null;
  verdict: GuardrailVerdict;
  /** What was found, in a word, such as `card`; `failed` if the check itself failed; null if nothing was found. */
  code?: string | null;
  /**
   * What was found, or why the check failed, in a sentence that never quotes the text. Null if nothing was found, and once the
   * run's payload was erased.
   */
  reason?: string | null;
  /** Of a check that failed: what became of the text. Otherwise null. */
  onError?: GuardrailOnError | null;
  /** Microseconds that it took. */
  durationUs: number;
  /** SHA-256 of the text that was judged, in hexadecimal. */
  digest: string;
  createdAt: string;
}

/** Where a run stands. For people who look into a run: a later version may keep, and show, something else. */
export interface RunState {
  status: Status;
  /** What it waits for; only while it waits. */
  waitingFor?: WaitingFor | null;
  /** Since when; only while it waits. */
  waitingSince?: string | null;
  /** When it goes on at the latest; only while it waits. */
  wakeAt?: string | null;
  /** The newest step; null before the first one. */
  step?: number | null;
  /** When the newest attempt of that began. */
  stepStartedAt?: string | null;
  /** Where that stands in the run's flow, as a JSON pointer: the run's place in its program. Left out in an agent's turn. */
  path: string;
  /** Of a flow, where it stood as that step began; null before the first step, and once it was erased. */
  flow?: FlowPosition | null;
}

/** Where a run of a flow stood as its newest step began. */
export interface FlowPosition {
  /** The version of the form in which it is kept. */
  format: number;
  /** The tasks under way, outermost first. */
  tasks: TaskUnderWay[];
  /** What the last task answered, or what the innermost list was given. */
  data: ShownValue;
  /** What tasks have exported: `$context`. */
  context: ShownValue;
  /** How many tasks were entered so far. */
  tasksEntered: number;
}

/** A task under way. */
export interface TaskUnderWay {
  /** The JSON pointer of the task in the definition. */
  path: string;
  position: TaskPosition;
  /** When it began. */
  startedAt: string;
  /** When its time is over. */
  until?: string | null;
  /** The iteration or the branch, from 0. */
  index?: number | null;
  /** Of a loop, how many items it goes over. */
  items?: number | null;
  /** The try, from 1; between two tries the next one. */
  attempt?: number | null;
  /** The error that is handled. */
  error?: ShownValue | null;
  /** What the task was given, after `input.from`. */
  input: ShownValue;
}

/**
 * Where a task under way stands.
 *
 * - `effect`: In its effect.
 * - `do`: In its list.
 * - `for`: In an iteration of a loop.
 * - `try`: In the list that is tried.
 * - `pause`: Between two tries.
 * - `catch`: In the list that handles the error.
 * - `parallel`: In iterations that run beside each other, as runs of their own.
 * - `branch`: In the branch that this run is.
 */
export type TaskPosition =
  | "effect"
  | "do"
  | "for"
  | "try"
  | "pause"
  | "catch"
  | "parallel"
  | "branch"
  | (string & {});

/** A value, if it is not too long. */
export interface ShownValue {
  /** Its length as JSON. */
  bytes: number;
  /** Null if it has more than 16 KiB. */
  value: any;
}

/** How a failed run is taken up. */
export interface RetryRun {
  /** Have a tool that is not idempotent called again, although it may have done its work: the run ended during the call. */
  repeatUnknownCall?: boolean;
}

/**
 * What has sums of its own.
 *
 * - `day`: Each day, in UTC.
 * - `project`: Each project.
 * - `agent`: Each agent, and together what no agent asked.
 * - `model`: Each model of each model provider.
 */
export type UsageGroup = "day" | "project" | "agent" | "model" | (string & {});

/** What was used in a time. */
export interface UsageReport {
  from: string;
  to: string;
  /** The sums, by day, then project, agent and model. What was not used has none. */
  data: UsageSum[];
  /** False, as on the last page of any list: the sums are one page. */
  hasMore: boolean;
}

/** The sums of a group. */
export interface UsageSum {
  /** The day, such as `2026-01-31`; by day alone. */
  day?: string | null;
  /** By project alone. */
  projectId?: string | null;
  /** By agent alone, where an agent asked. */
  agentId?: string | null;
  /** By model alone. */
  modelProviderId?: string | null;
  /** By model alone. */
  model?: string | null;
  /** Model calls, failed and lost ones included. */
  calls: number;
  /** US dollars; a call without a price counts as 0. */
  costUsd: number;
  /** Tokens by kind. */
  tokens: Tokens;
  /** Of the calls, those whose cost is not known: the model had no price, or the call did not say what it used. They count 0. */
  callsWithoutCost: number;
}

/**
 * What kinds of objects hints are about.
 *
 * - `run`: A run began, went on or ended.
 * - `approval`: An approval was opened, assigned or closed.
 */
export type ChangeKind = "run" | "approval" | (string & {});

/** Look at this again. */
export interface Changed {
  kind: ChangeKind;
  /** The object; left out where any of the kind may have changed. */
  id?: string | null;
  /** Its project. */
  projectId?: string | null;
}

/** A page of a list. */
export interface ApprovalPage {
  /** The rows. */
  data: Approval[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** What a run asks a reviewer. */
export interface Approval {
  id: string;
  projectId: string;
  /** The run that waits for it. */
  runId: string;
  /** The run at the top of that run's tree. */
  rootRunId: string;
  source: ApprovalSource;
  /** Where the step that waits stands in the run's program. */
  path: string;
  title: string;
  /** The reviewer role that may decide. */
  requiredRole: string;
  status: ApprovalStatus;
  /** Who started the run; this person does not decide. */
  requestedBy: string;
  assignedTo?: string | null;
  createdAt: string;
  /** Until when it waits. Nobody's silence approves it. */
  expiresAt: string;
  /** When another role is asked in its place. */
  escalatesAt?: string | null;
  /** The approval whose place this one took. */
  escalatedFrom?: string | null;
  /** The approval that took the place of this one. */
  escalatedTo?: string | null;
  closedAt?: string | null;
  /** Who closed it; null while it waits, and where time or the end of the run did. */
  decidedBy?: string | null;
  comment?: string | null;
}

/**
 * What asks for an approval.
 *
 * - `flow`: A step of a flow.
 * - `tool`: A tool call of an agent.
 */
export type ApprovalSource = "flow" | "tool" | (string & {});

/** Something that happened to an approval. */
export interface ApprovalEvent {
  /** The place among all events of approvals; later ones have higher numbers, with gaps. */
  seq: number;
  kind: ApprovalEventKind;
  createdAt: string;
  data: ApprovalChange;
}

/**
 * What happened to an approval.
 *
 * - `approval.waiting`: It was opened, and waits.
 * - `approval.assigned`: It waits, and was assigned to somebody or taken from everybody.
 * - `approval.closed`: It waits no more.
 */
export type ApprovalEventKind = "approval.waiting" | "approval.assigned" | "approval.closed" | (string & {});

/** An approval, as the event left it. */
export interface ApprovalChange {
  approvalId: string;
  projectId: string;
  runId: string;
  title: string;
  /** The reviewer role that may decide. */
  requiredRole: string;
  status: ApprovalStatus;
  /** Whom it is assigned to by now, if that has changed since. */
  assignedTo?: string | null;
  /** Until when it waits, if it waits. */
  expiresAt: string;
}

/** The stream begins here: an event with a higher number comes on it, whatever has a lower one shows in the lists. */
export interface StreamStart {
  /** The number. */
  seq: number;
}

/** An approval with what it is about. */
export interface WholeApproval {
  id: string;
  projectId: string;
  /** The run that waits for it. */
  runId: string;
  /** The run at the top of that run's tree. */
  rootRunId: string;
  source: ApprovalSource;
  /** Where the step that waits stands in the run's program. */
  path: string;
  title: string;
  /** The reviewer role that may decide. */
  requiredRole: string;
  status: ApprovalStatus;
  /** Who started the run; this person does not decide. */
  requestedBy: string;
  assignedTo?: string | null;
  createdAt: string;
  /** Until when it waits. Nobody's silence approves it. */
  expiresAt: string;
  /** When another role is asked in its place. */
  escalatesAt?: string | null;
  /** The approval whose place this one took. */
  escalatedFrom?: string | null;
  /** The approval that took the place of this one. */
  escalatedTo?: string | null;
  closedAt?: string | null;
  /** Who closed it; null while it waits, and where time or the end of the run did. */
  decidedBy?: string | null;
  comment?: string | null;
  subject: ApprovalSubject;
  /** Whether the caller may decide about it now. */
  mayDecide: boolean;
  /** The code that a decision of the caller would be answered with. */
  mayNotBecause?: string | null;
  /** What the caller may put in place of the subject's: `arguments` of a tool call. */
  mayEdit: string[];
  /** What happened to it, in order. */
  log: ApprovalLogEntry[];
}

/** What an approval is about, and what the reviewer gave. */
export interface ApprovalSubject {
  /** Of a tool call: the tool's name. */
  tool?: string | null;
  /** Of a tool call: what the tool is to be called with. */
  arguments?: any;
  /** What the run shows beside. */
  context?: any;
  /** Names what is asked: a decision that carries it is refused if it is not about that. */
  digest: string;
  /** What the reviewer put in place of the arguments. */
  editedArguments?: any;
  /** The JSON Schema that the answer of who approves has to fit: an object of flat fields. Null: it takes any answer, or none. */
  form?: any;
  /** What the reviewer answered. */
  answer?: any;
  /**
   * Of a tool call: an earlier call with this content may have been made, and nobody got its answer. Look there before you
   * approve another one. Null: there is none.
   */
  earlierCall?: EarlierCall | null;
}

/** An earlier call with the same content, whose answer nobody got. */
export interface EarlierCall {
  /** The approval that allowed it; null if nobody was asked. */
  approvalId?: string | null;
  /** The reviewer of that approval changed its arguments. */
  isEdited: boolean;
}

/** Something that happened to an approval. */
export interface ApprovalLogEntry {
  /** `opened`, `assigned`, or as it was closed. */
  kind: string;
  /** Who did it; null where the run, time or the end of the run did. */
  userId?: string | null;
  /** By which key. */
  keyId?: string | null;
  at: string;
}

/** A decision. */
export interface DecideApproval {
  decision: Verdict;
  /** Why. The run gets to read it. */
  comment?: string | null;
  /** What the run gets to read beside: any JSON, 64 KiB at most. If the subject has a `form`, it has to fit that. */
  answer?: any;
  /**
   * Of a tool call that is approved: what the tool is called with in place of the subject's `arguments`. They have to fit
   * the tool's schema, and the model is told that they are the reviewer's.
   */
  arguments?: any;
  /** The subject's `digest` that was read: of anything else nothing is decided. */
  expectedDigest?: string | null;
}

/**
 * Yes or no.
 *
 * - `approve`: The run goes on with it.
 * - `reject`: The run is told that it may not.
 */
export type Verdict = "approve" | "reject" | (string & {});

/** Whom an approval is assigned to; neither: nobody. */
export interface AssignApproval {
  userId?: string | null;
  /** In any case. */
  email?: string | null;
}

/** Who is asked in the place of the role. */
export interface EscalateApproval {
  /** A reviewer role; left out: the one that the approval names for its escalation. */
  requiredRole?: string | null;
  /** Whom the new approval is assigned to. Left out with `requiredRole`: whom the approval names for its escalation. */
  userId?: string | null;
  /** The same, in any case. */
  email?: string | null;
  /** Why. */
  comment?: string | null;
}

/** What waits for the caller. */
export interface Inbox {
  /** The rows. */
  data: InboxItem[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
  counts: InboxCounts;
}

/** Something that waits for the caller. */
export interface InboxItem {
  /** What kind of thing `id` names. */
  kind: InboxKind;
  id: string;
  projectId: string;
  title: string;
  /** Since when it waits. */
  since: string;
  /** Until when it waits, if it does not wait for ever. */
  expiresAt?: string | null;
  /** It is assigned to the caller; otherwise to nobody. */
  isAssigned: boolean;
}

/**
 * What kinds of things wait.
 *
 * - `approval`: An approval.
 */
export type InboxKind = "approval" | (string & {});

/** How much the whole inbox holds. */
export interface InboxCounts {
  /** Assigned to the caller. */
  assigned: number;
  /** Assigned to nobody. */
  unassigned: number;
}

/** How much waits for the caller. */
export interface InboxSummary {
  /** Approvals, those that are assigned to nobody included; 100 stands for 100 or more. */
  approvals: number;
}

/** A receiver to register. */
export interface NewWebhookEndpoint {
  /** Where events are posted to. */
  url: string;
  /** Each kind once. */
  events: WebhookEventKind[];
  /** The secret that signs: `whsec_` and the base64 of at least 24 bytes. */
  secretRef: SecretRef;
  /** Left out: every event of these kinds. */
  filter?: WebhookFilter | null;
}

/**
 * The kinds that an endpoint can be registered for.
 *
 * - `run.finished`: A run that an app or the command line started has ended.
 * - `improvement-pass.finished`: An improvement pass has ended, whoever started it. Nothing sends it yet.
 * - `approval.requested`: An approval has begun to wait for a reviewer.
 */
export type WebhookEventKind = "run.finished" | "improvement-pass.finished" | "approval.requested" | (string & {});

/** Which events of its kinds an endpoint takes. With a filter, dry runs are left out unless asked for. */
export interface WebhookFilter {
  /** Of `run.finished`: runs of these flows alone, any version of them. It says nothing of other kinds. */
  flowIds?: string[] | null;
  /** Of this project alone. */
  projectId?: string | null;
  /** Of `run.finished`: dry runs, too. */
  includeDryRuns?: boolean | null;
}

/** A receiver of webhooks. */
export interface WebhookEndpoint {
  endpointId: string;
  url: string;
  events: WebhookEventKind[];
  /** The secret that signs, by name only. */
  secretRef: SecretRef;
  /** For 24 hours after another secret was named. */
  previousSecret?: PreviousWebhookSecret | null;
  filter?: WebhookFilterView | null;
  state: WebhookEndpointState;
  deliveries: WebhookDeliveryCounts;
  /** When an attempt last succeeded. */
  lastDeliveredAt?: string | null;
  /** When an attempt last failed. */
  lastFailedAt?: string | null;
  /** Why that attempt failed. */
  lastError?: WebhookFailure | null;
  /** The HTTP status that it failed with. */
  lastStatus?: number | null;
  createdBy: string;
  createdAt: string;
  updatedAt: string;
}

/** A secret that signs beside the one that is named now. */
export interface PreviousWebhookSecret {
  secretRef: SecretRef;
  signsUntil: string;
}

/** The filter as it stands. */
export interface WebhookFilterView {
  flowIds?: string[] | null;
  projectId?: string | null;
  includeDryRuns?: boolean | null;
}

/**
 * How deliveries to an endpoint go.
 *
 * - `healthy`: The newest attempt succeeded, or there was none.
 * - `failing`: The newest attempt failed.
 */
export type WebhookEndpointState = "healthy" | "failing" | (string & {});

/** How many deliveries an endpoint has. */
export interface WebhookDeliveryCounts {
  delivered: number;
  failed: number;
  /** 1000 stands for 1000 or more. */
  beingSent: number;
}

/**
 * Why an attempt failed.
 *
 * - `no-answer`: No answer in time.
 * - `host-not-resolved`: The host name does not resolve.
 * - `nothing-listening`: Nothing is listening.
 * - `url-refused`: The address is one that webhooks may not go to.
 * - `tls-refused`: The TLS certificate was not accepted.
 * - `connection-failed`: The connection failed; so too an attempt whose outcome a crash hid.
 * - `http-status`: The receiver answered with a status other than 2xx.
 * - `secret-unavailable`: The signing secret cannot be read or cannot sign.
 * - `endpoint-unregistered`: The endpoint was unregistered before the delivery went out.
 */
export type WebhookFailure =
  | "no-answer"
  | "host-not-resolved"
  | "nothing-listening"
  | "url-refused"
  | "tls-refused"
  | "connection-failed"
  | "http-status"
  | "secret-unavailable"
  | "endpoint-unregistered"
  | (string & {});

/** A page of a list. */
export interface WebhookEndpointPage {
  /** The rows. */
  data: WebhookEndpoint[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A URL to judge. */
export interface CheckUrl {
  /** One of more than 2048 bytes is none that can be registered, and the answer says so. */
  url: string;
}

/** What is said of a URL. */
export interface CheckedUrl {
  /** As it would be stored; where it is none, as it was given, 2048 bytes of it. */
  url: string;
  /** An endpoint with this URL would be registered. */
  allowed: boolean;
  /** What its host is or resolves to, refused ones included. */
  addresses: string[];
  /** Why it is refused. */
  refusal?: UrlRefusal | null;
  /** Why no address is known: it is allowed, and each attempt looks its host up again. */
  unresolved?: string | null;
}

/** Why a URL is refused. */
export interface UrlRefusal {
  /** The rule that refuses. */
  rule: string;
  /** The address that it refuses; absent where it refuses the URL itself or its host's name. */
  address?: string | null;
  message: string;
}

/** What to change of a receiver. */
export interface ChangeWebhookEndpoint {
  /** What waits goes there, too. */
  url?: string | null;
  events?: WebhookEventKind[] | null;
  secretRef?: SecretRef | null;
  /** Replaces the one that stands. Null: every event of the endpoint's kinds. */
  filter?: WebhookFilter | null;
}

/** An event on its way to an endpoint. */
export interface WebhookDelivery {
  id: string;
  endpointId: string;
  /** The event: the header `webhook-id` of every attempt. */
  eventId: string;
  /** The event's kind. */
  type: string;
  /** A person sent it as a test. */
  isTest: boolean;
  /** The run that it tells of; only of `run.finished`. */
  runId?: string | null;
  /** How that run ended. */
  runStatus?: string | null;
  /** The delivery that this one sends again. */
  resends?: string | null;
  /** The newest delivery that sends this one again. */
  resentAs?: string | null;
  state: WebhookDeliveryState;
  /** Its story in a sentence. */
  summary: string;
  /** Attempts that have ended. */
  attemptCount: number;
  nextAttemptAt?: string | null;
  /** Why the newest attempt failed. */
  lastError?: WebhookFailure | null;
  /**
   * The HTTP status that the newest attempt was answered with, once delivered a 2xx. Null before
   * the first attempt, without an answer, and if unregistering the endpoint ended the delivery.
   */
  lastStatus?: number | null;
  createdAt: string;
  /** When it was delivered, or failed for good. */
  endedAt?: string | null;
}

/**
 * The states of a delivery.
 *
 * - `being-sent`: It waits for an attempt, or one is under way.
 * - `delivered`: The receiver answered with a 2xx status.
 * - `failed`: Nothing more is sent.
 */
export type WebhookDeliveryState = "being-sent" | "delivered" | "failed" | (string & {});

/** From when on. */
export interface ResendFailed {
  /** Deliveries that failed for good then or later. */
  failedSince: string;
}

/** What is sent again. */
export interface Resent {
  /** Deliveries that are sent again. */
  count: number;
  /** More failed since then: ask again. */
  hasMore: boolean;
}

/** A page of a list. */
export interface WebhookDeliveryPage {
  /** The rows. */
  data: WebhookDelivery[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** A delivery with all that is known of it. */
export interface WebhookDeliveryWithAttempts {
  id: string;
  endpointId: string;
  /** The event: the header `webhook-id` of every attempt. */
  eventId: string;
  /** The event's kind. */
  type: string;
  /** A person sent it as a test. */
  isTest: boolean;
  /** The run that it tells of; only of `run.finished`. */
  runId?: string | null;
  /** How that run ended. */
  runStatus?: string | null;
  /** The delivery that this one sends again. */
  resends?: string | null;
  /** The newest delivery that sends this one again. */
  resentAs?: string | null;
  state: WebhookDeliveryState;
  /** Its story in a sentence. */
  summary: string;
  /** Attempts that have ended. */
  attemptCount: number;
  nextAttemptAt?: string | null;
  /** Why the newest attempt failed. */
  lastError?: WebhookFailure | null;
  /**
   * The HTTP status that the newest attempt was answered with, once delivered a 2xx. Null before
   * the first attempt, without an answer, and if unregistering the endpoint ended the delivery.
   */
  lastStatus?: number | null;
  createdAt: string;
  /** When it was delivered, or failed for good. */
  endedAt?: string | null;
  /** Those that have ended, the first one first. */
  attempts: WebhookAttempt[];
  /** The body that is sent; null once it was dropped, with what was sent before. */
  event?: any;
}

/** One attempt of a delivery. */
export interface WebhookAttempt {
  /** From 1. */
  attempt: number;
  begunAt: string;
  /** Null where the version before began it, and it is under way. */
  endedAt?: string | null;
  durationMs?: number | null;
  /** Why it failed; null unless it did. */
  reason?: WebhookFailure | null;
  /** What went wrong, in words; it names the rule and the address that refuse the receiver. */
  message?: string | null;
  /** The HTTP status of the answer. */
  status?: number | null;
  /** The address that was connected to, or tried. */
  address?: string | null;
  /** The first 16 KiB of the answer's body; what is no UTF-8 is replaced. */
  answer?: string | null;
}

/**
 * Whether the caller may.
 *
 * - `allowed`: The caller may.
 * - `denied`: The caller may not.
 */
export type DecisionOutcome = "allowed" | "denied" | (string & {});

/** A page of a list. */
export interface AccessDecisionPage {
  /** The rows. */
  data: AccessDecision[];
  /** More rows follow. */
  hasMore: boolean;
  /** Give it as `cursor` to read on; absent on the last page. */
  nextCursor?: string | null;
}

/** An access decision. */
export interface AccessDecision {
  /** Its id. */
  id: string;
  /** When it was decided. */
  timestamp: string;
  /** Who, as `user:<user id>`. */
  actorSubject: string;
  /** What was asked for: `read`, `write`, `admin` or `sign-in`. */
  action: string;
  /** On what, as `<kind>:<id>`. */
  resource: string;
  /** Whether the actor may. */
  outcome: DecisionOutcome;
  /** Why, or which check refused. */
  reason: string;
  /** Which check decided: `model`, or the name of a check before it. */
  stage: string;
  /** The part of the check that refused. */
  failingPart?: string | null;
  /** What was asked of the authorization server; null if it was not asked. */
  check?: AccessCheck | null;
  /** How long the decision took, in milliseconds. */
  durationMs: number;
  /** The request, as its answer named it. */
  requestId?: string | null;
  /** The request's trace (W3C Trace Context). */
  traceId?: string | null;
  /** The id of the credential that the request came with. */
  keyId?: string | null;
  /** The credential that the request came with; null where its kind was not recorded, as before there were sessions. */
  credential?: RecordedCredential | null;
  /** The route, as `METHOD /path/{parameter}`. */
  route?: string | null;
  /** The run that it is about. */
  runId?: string | null;
  /** The address that the request came from. */
  clientAddress?: string | null;
}

/** What was asked of the authorization server. */
export interface AccessCheck {
  /** Who, as `user:<user id>`. */
  user: string;
  /** What, such as `can_read`. */
  relation: string;
  /** On what, as `<kind>:<id>`. */
  object: string;
  /** The authorization server's store. */
  storeId: string;
  /** The authorization model. */
  modelId: string;
}

/** The credential that a request came with. */
export interface RecordedCredential {
  /** What it is. */
  kind: CredentialKind;
  /** Its id; of one that was opened or minted, the new one's. */
  id: string;
}

/** The body of an event, the same at every attempt. A later server may send others: go by `type`. */
export type WebhookEvent =
  | RunFinishedWebhookEvent
  | ImprovementPassFinishedWebhookEvent
  | ApprovalRequestedWebhookEvent
  | TestWebhookEvent;

/** A run's fields in a `run.finished` event. */
export interface WebhookRun {
  /** The run. */
  id: string;
  /** Its project. */
  projectId: string;
  /** `agent.turn` for an agent's turn. */
  flowId: string;
  /** The version of the flow. */
  flowVersion: string;
  /** Where it stands. */
  status: Status;
  /** As the caller said. */
  dryRun: boolean;
  /**
   * Why it failed; null unless it did. In a webhook event and in a list it names the task, the status and the error's title,
   * and quotes no data of the run; the run itself has the whole message.
   */
  failureMessage?: string | null;
  /** When it was created. */
  createdAt: string;
  /** When it ended; null until it has. */
  completedAt?: string | null;
  /** What its model calls used. */
  usage?: Usage;
  /** Only on an agent's turn. */
  agent?: RunAgent | null;
}

/** An improvement pass that has ended. */
export interface WebhookImprovementPass {
  /** The pass. */
  id: string;
  /** Its project. */
  projectId: string;
  /** How it ended. */
  status: WebhookPassStatus;
  /** What came of it; null where it did not come so far. */
  outcome?: WebhookPassOutcome | null;
  /** When it began. */
  createdAt: string;
  /** When it ended. */
  completedAt: string;
}

/**
 * How an improvement pass ends.
 *
 * - `completed`: It came to an end of its own.
 * - `failed`: It could not.
 * - `cancelled`: Somebody asked it to end.
 */
export type WebhookPassStatus = "completed" | "failed" | "cancelled" | (string & {});

/** What came of an improvement pass. */
export interface WebhookPassOutcome {
  /** The proposal that it wrote; null where it wrote none. */
  proposalId?: string | null;
}

/** An approval that waits for a reviewer. */
export interface WebhookApproval {
  /** The approval; the event has the same id. */
  approvalId: string;
  /** Its project. */
  projectId: string;
  /** The role that a reviewer needs. */
  requiredRole: string;
  /** What a reviewer reads first. */
  title: string;
  /** The user that it is assigned to; absent where it is nobody's. */
  assignedTo?: string | null;
  /** When it began to wait. */
  createdAt: string;
  /** Until when it waits. */
  expiresAt: string;
  /** Its page in the console; absent where the runtime does not know its own public address. */
  url?: string | null;
}

/** The error body. */
export interface Error {
  error: ErrorContent;
}

/** What went wrong. */
export interface ErrorContent {
  /** A code that programs can rely on. */
  code: string;
  /** A sentence that says what is wrong and what to do. */
  message: string;
  /** Code-specific details. */
  details: Record<string, any>;
  /** `req-<uuid>`: the log has the cause under it. */
  requestId: string;
}

/** A role of one's own. */
export interface DirectWay {
  kind: "direct";
  role: Role;
  /** Since when; absent where no membership stands behind the role. */
  joinedAt?: string | null;
}

/** Admin of the tenant. */
export interface TenantAdminWay {
  kind: "tenant-admin";
}

/** Admin of the project's org. */
export interface OrgAdminWay {
  kind: "org-admin";
}

/** A role of a team. */
export interface TeamWay {
  kind: "team";
  teamId: string;
  teamName: string;
  role: Role;
}

/** What a model answered. */
export interface ModelStepAnswer {
  /** Its number in the run, from 1. */
  step: number;
  /** The attempt, from 1. */
  attempt: number;
  type: "model";
  /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
  name: string;
  /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
  path?: string;
  /** For a tool that a model calls, its run and its approval: the model's id of the call. */
  callId?: string | null;
  /** True once what was said was erased: texts are empty then. */
  erased?: boolean;
  /** What it came to; absent in events of earlier versions. */
  outcome?: StepOutcome | null;
  /** The whole text; it replaces what was streamed. */
  text: string;
  /** The tools that it wants called. */
  toolCalls: ToolCall[];
  /** Why it stopped: `stop`, `length` (the answer was cut at its maximum length) or `tool_calls`. */
  finishReason?: string | null;
  /** The model's reasoning can be read with the run's steps; absent without any. */
  hasReasoning?: boolean;
  /** What the provider counted; null where it counted nothing. */
  tokens: TokenCounts;
}

/** What a tool answered. */
export interface ToolStepAnswer {
  /** Its number in the run, from 1. */
  step: number;
  /** The attempt, from 1. */
  attempt: number;
  type: "tool";
  /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
  name: string;
  /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
  path?: string;
  /** For a tool that a model calls, its run and its approval: the model's id of the call. */
  callId?: string | null;
  /** True once what was said was erased: texts are empty then. */
  erased?: boolean;
  /** What it came to; absent in events of earlier versions. */
  outcome?: StepOutcome | null;
  /** Whether the model was told of an error. */
  isError: boolean;
  /** What the model was told, cut after 16 KiB. */
  output: string;
  /** Whether it was cut. */
  outputTruncated: boolean;
}

/** How child runs ended. */
export interface ChildStepAnswer {
  /** Its number in the run, from 1. */
  step: number;
  /** The attempt, from 1. */
  attempt: number;
  type: "child";
  /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
  name: string;
  /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
  path?: string;
  /** For a tool that a model calls, its run and its approval: the model's id of the call. */
  callId?: string | null;
  /** True once what was said was erased: texts are empty then. */
  erased?: boolean;
  /** What it came to; absent in events of earlier versions. */
  outcome?: StepOutcome | null;
  /** In the order in which they were begun. */
  children: ChildEnd[];
}

/** How an approval was closed. */
export interface ApprovalStepAnswer {
  /** Its number in the run, from 1. */
  step: number;
  /** The attempt, from 1. */
  attempt: number;
  type: "approval";
  /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
  name: string;
  /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
  path?: string;
  /** For a tool that a model calls, its run and its approval: the model's id of the call. */
  callId?: string | null;
  /** True once what was said was erased: texts are empty then. */
  erased?: boolean;
  /** What it came to; absent in events of earlier versions. */
  outcome?: StepOutcome | null;
  /** Null in a dry run, which opens none. */
  approvalId?: string | null;
  /** How it was closed. */
  decision: ApprovalStatus;
}

/** What guardrails decided of a text, which the event does not have. */
export interface GuardrailStepAnswer {
  /** Its number in the run, from 1. */
  step: number;
  /** The attempt, from 1. */
  attempt: number;
  type: "guardrail";
  /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
  name: string;
  /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
  path?: string;
  /** For a tool that a model calls, its run and its approval: the model's id of the call. */
  callId?: string | null;
  /** True once what was said was erased: texts are empty then. */
  erased?: boolean;
  /** What it came to; absent in events of earlier versions. */
  outcome?: StepOutcome | null;
  /** What they decided. */
  verdict: TextVerdict;
  /** The check that blocked the text; absent otherwise. */
  blockedBy?: string | null;
  /** What was found, in a word; absent if that is nothing. */
  code?: string | null;
}

/** What a server answered to an HTTP request. */
export interface HttpStepAnswer {
  /** Its number in the run, from 1. */
  step: number;
  /** The attempt, from 1. */
  attempt: number;
  type: "http";
  /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
  name: string;
  /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
  path?: string;
  /** For a tool that a model calls, its run and its approval: the model's id of the call. */
  callId?: string | null;
  /** True once what was said was erased: texts are empty then. */
  erased?: boolean;
  /** What it came to; absent in events of earlier versions. */
  outcome?: StepOutcome | null;
  /** The status that the server answered with. */
  statusCode: number;
}

/** What a dry run did not perform. */
export interface SimulatedStepAnswer {
  /** Its number in the run, from 1. */
  step: number;
  /** The attempt, from 1. */
  attempt: number;
  type: "tool" | "http" | "child" | "guardrail";
  /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
  name: string;
  /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
  path?: string;
  /** For a tool that a model calls, its run and its approval: the model's id of the call. */
  callId?: string | null;
  /** True once what was said was erased: texts are empty then. */
  erased?: boolean;
  /** What it came to; absent in events of earlier versions. */
  outcome?: StepOutcome | null;
  /** Always true. */
  simulated: boolean;
}

/** A wait is over. Last, since it reads from anything. */
export interface WaitStepAnswer {
  /** Its number in the run, from 1. */
  step: number;
  /** The attempt, from 1. */
  attempt: number;
  type: "wait";
  /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
  name: string;
  /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
  path?: string;
  /** For a tool that a model calls, its run and its approval: the model's id of the call. */
  callId?: string | null;
  /** True once what was said was erased: texts are empty then. */
  erased?: boolean;
  /** What it came to; absent in events of earlier versions. */
  outcome?: StepOutcome | null;
}

/** The run exists; it waits for a thread. */
export interface RunCreatedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "run.created";
  data: {
    /** What runs. */
    flowId: string;
    /** Its version. */
    flowVersion: string;
    /** Who began it. */
    origin: Origin;
    /** As the caller said. */
    dryRun: boolean;
    /** For an agent's turn. */
    agent?: RunAgent | null;
    /** As the caller gave them; absent without any. */
    labels?: Record<string, string>;
    /** Of an agent's turn whose text guardrails judge: whether readers get text after the verdict; absent otherwise. */
    streaming?: GuardrailStreaming | null;
  };
}

/**
 * The run takes up one that failed. Steps that were done there are taken over and not done again; what they answered
 * is in that run's events.
 */
export interface RunRetriedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "run.retried";
  data: {
    /** The run that failed. */
    retryOf: string;
    /** How many of its steps are taken over, from the first. */
    steps: number;
  };
}

/** Somebody carries it on, for the first time. */
export interface RunStartedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "run.started";
  data: Record<string, any>;
}

/** It waits, and holds nothing meanwhile. After a wait for a retry a `step.started` with a higher attempt follows. */
export interface RunWaitingEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "run.waiting";
  data: {
    /** What it waits for. */
    waitingFor?: WaitingFor | null;
    /** Of a wait for a retry: why, in a sentence. */
    reason?: string | null;
    /** Of a wait for a retry: about when it goes on. */
    retryAt?: string | null;
    /** Of a wait for a time: when it is over. */
    wakeAt?: string | null;
    /** The step that goes on, or will be tried again. */
    step?: number | null;
    /** The attempt that waits, or that failed. */
    attempt?: number | null;
  };
}

/** An attempt of a step begins. Text of an earlier attempt of the step is void. */
export interface StepStartedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "step.started";
  data: StepRef;
}

/**
 * The conversation was longer than the model's context window, so its oldest exchanges were left out of what the
 * model was asked. Comes before the end of the step.
 */
export interface ContextTrimmedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "context.trimmed";
  data: {
    /** The model's step. */
    step: number;
    /** The attempt. */
    attempt: number;
    /** How many exchanges were left out: a message of the user with all that followed it. */
    exchanges: number;
    /**
     * The model's context window, in tokens, if it is known: a server may find a prompt too long without saying how
     * much it takes.
     */
    contextWindow?: number | null;
  };
}

/** A guardrail did not let something pass as it was. What it found is not told. */
export interface GuardrailDecidedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "guardrail.decided";
  data: {
    /** The step. */
    step: number;
    /** The attempt. */
    attempt: number;
    /** Where the check stands. */
    point: GuardrailPoint;
    /** Of a call: which of the model's answer, from 0. */
    call?: number | null;
    /** The check. */
    name: string;
    /** What it decided. */
    verdict: GuardrailVerdict;
  };
}

/** A guardrail failed. What it was to judge was blocked, or went on unchecked. */
export interface GuardrailFailedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "guardrail.failed";
  data: {
    /** The step. */
    step: number;
    /** The attempt. */
    attempt: number;
    /** Where the check stands. */
    point: GuardrailPoint;
    /** Of a call: which of the model's answer, from 0. */
    call?: number | null;
    /** The check. */
    name: string;
    /** What became of what it was to judge. */
    onError: GuardrailOnError;
  };
}

/** A step is done, and is never done again. It may have failed all the same: see `outcome`. */
export interface StepCompletedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "step.completed";
  /** An attempt of a step. */
  data: ModelStepAnswer | ToolStepAnswer | ChildStepAnswer | ApprovalStepAnswer | GuardrailStepAnswer | HttpStepAnswer | SimulatedStepAnswer | WaitStepAnswer;
}

/** The process that carried the run on died during a step, which is about to be done again. */
export interface StepRestartedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "step.restarted";
  /** An attempt of a step. */
  data: {
    /** Its number in the run, from 1. */
    step: number;
    /** The attempt, from 1. */
    attempt: number;
    /** What the step does. */
    type: StepKind;
    /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
    name: string;
    /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
    path?: string;
    /** For a tool that a model calls, its run and its approval: the model's id of the call. */
    callId?: string | null;
    /** True once what was said was erased: texts are empty then. */
    erased?: boolean;
    /** The attempt whose call was lost: nobody knows what it used. */
    lostAttempt: number;
  };
}

/** An attempt of a step failed. */
export interface StepFailedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "step.failed";
  /** An attempt of a step. */
  data: {
    /** Its number in the run, from 1. */
    step: number;
    /** The attempt, from 1. */
    attempt: number;
    /** What the step does. */
    type: StepKind;
    /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
    name: string;
    /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
    path?: string;
    /** For a tool that a model calls, its run and its approval: the model's id of the call. */
    callId?: string | null;
    /** True once what was said was erased: texts are empty then. */
    erased?: boolean;
    /** Why, in a sentence. */
    reason: string;
    /** `unknown` if the call may have taken effect; absent in events of earlier versions. */
    outcome?: StepOutcome | null;
    /** Whether it will be tried again. */
    willRetry: boolean;
  };
}

/** A dry run does not perform a step, which is completed with this. */
export interface StepSimulatedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "step.simulated";
  /** An attempt of a step. */
  data: {
    /** Its number in the run, from 1. */
    step: number;
    /** The attempt, from 1. */
    attempt: number;
    /** What the step does. */
    type: StepKind;
    /** Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls. */
    name: string;
    /** Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call. */
    path?: string;
    /** For a tool that a model calls, its run and its approval: the model's id of the call. */
    callId?: string | null;
    /** True once what was said was erased: texts are empty then. */
    erased?: boolean;
    /** What it would have sent, as the flow or the model says it; null if that has more than 16 KiB. */
    request: any;
    /** Whether it was left out. */
    requestOmitted: boolean;
  };
}

/** A task of a flow begins. Of tasks that only compute, as of all, the events are written with the next step. */
export interface TaskStartedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "task.started";
  data: TaskRef;
}

/** A task of a flow is done. */
export interface TaskCompletedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "task.completed";
  data: TaskRef;
}

/** A task of a flow is left out: its `if` does not hold. */
export interface TaskSkippedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "task.skipped";
  data: TaskRef;
}

/** A task of a flow ends with an error, or is cut by its time. */
export interface TaskFaultedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "task.faulted";
  /** A task of a flow. */
  data: {
    /** Its JSON pointer in the definition. */
    path: string;
    /** What it is. */
    type: FlowNodeType;
    /** In a loop: the iteration, from 0. */
    iteration?: number | null;
    /** Its status, as those of HTTP. */
    status: number;
    /** What went wrong, cut after 200 characters. */
    title: string;
    /** True once what was said was erased. */
    erased?: boolean;
    /** It is a `try` whose list will be tried again. */
    willRetry: boolean;
  };
}

/** A `try` of a flow handles an error of its list, and does not try it again. */
export interface TaskCaughtEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "task.caught";
  /** A task of a flow. */
  data: {
    /** Its JSON pointer in the definition. */
    path: string;
    /** What it is. */
    type: FlowNodeType;
    /** In a loop: the iteration, from 0. */
    iteration?: number | null;
    /** Its status, as those of HTTP. */
    status: number;
    /** What went wrong, cut after 200 characters. */
    title: string;
    /** True once what was said was erased. */
    erased?: boolean;
  };
}

/** So many events of tasks were left out here: a run tells of 5,000 tasks at most, and of 200 between two steps. */
export interface EventsOmittedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "events.omitted";
  data: {
    /** How many. */
    count: number;
  };
}

/** A step began a run. */
export interface ChildStartedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "child.started";
  data: {
    /** The step that began it. */
    step: number;
    /** The task of the flow, or the call of the turn. */
    path: string;
    /** Which branch or iteration of the task, from 0. */
    index: number;
    /** The run that began. */
    runId: string;
    /** What runs. */
    flowId: string;
  };
}

/** A run that a step began has ended. */
export interface ChildCompletedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "child.completed";
  data: {
    /** The step that began it. */
    step: number;
    /** The task of the flow, or the call of the turn. */
    path: string;
    /** Which branch or iteration of the task, from 0. */
    index: number;
    /** The run that ended. */
    runId: string;
    /** `completed`, `failed` or `cancelled`. */
    status: string;
    /** What it used, runs below it included. */
    usage: Usage;
  };
}

/** An approval was opened, and the run waits for it. */
export interface ApprovalRequestedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "approval.requested";
  data: {
    /** The step that waits for it. */
    step: number;
    /** Where that stands in the run's program. */
    path?: string;
    /** Of a call of a tool by a model: the model's id of the call. */
    callId?: string | null;
    /** The approval. */
    approvalId: string;
    /** What a reviewer reads first. */
    title: string;
    /** The role that may decide it. */
    requiredRole: string;
    /** How long it waits, from its opening. */
    expiresAfterMs: number;
  };
}

/** An approval was closed. Who decided it, and why, is for reviewers. */
export interface ApprovalDecidedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "approval.decided";
  data: {
    /** The step that waited for it. */
    step: number;
    /** The approval. */
    approvalId: string;
    /** How it was closed. */
    status: ApprovalStatus;
  };
}

/**
 * An approval was closed, and another one for another role waits in its place. Who escalated it, if it was not its time,
 * is for reviewers.
 */
export interface ApprovalEscalatedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "approval.escalated";
  data: {
    /** The step that waits for it. */
    step: number;
    /** The approval that was closed. */
    approvalId: string;
    /** The approval that waits in its place, with the same title and the same end of its time. */
    to: string;
    /** The role that may decide that one. */
    requiredRole: string;
  };
}

/** An approval was opened and assigned to nobody: the person whom its definition names is no active user with the role. */
export interface ApprovalUnassignedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "approval.unassigned";
  data: {
    /** The step that waits for it. */
    step: number;
    /** The approval. */
    approvalId: string;
    /** The role that may decide it. */
    requiredRole: string;
  };
}

/** Somebody asked the run to end while it was carried on. */
export interface RunCancelRequestedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "run.cancelRequested";
  data: Record<string, any>;
}

/** The last event: the run has an output. */
export interface RunCompletedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "run.completed";
  data: {
    /** The agent's answer was cut at its maximum length; absent otherwise. */
    answerCut?: boolean;
    /** Those of the run; absent without any. */
    labels?: Record<string, string>;
  };
}

/** The last event: the run failed. */
export interface RunFailedEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "run.failed";
  data: {
    /** Why, in a sentence. */
    failureMessage: string;
    /** The same without data of the run: what webhook events, lists and the operator's log have. */
    failureSummary?: string;
    /** Those of the run; absent without any. */
    labels?: Record<string, string>;
  };
}

/** The last event: the run was cancelled. */
export interface RunCancelledEvent {
  /** Its number in the run, from 1 without gaps. */
  seq: number;
  /** When it was written. */
  createdAt: string;
  kind: "run.cancelled";
  data: {
    /** Those of the run; absent without any. */
    labels?: Record<string, string>;
  };
}

/** A run has ended. */
export interface RunFinishedWebhookEvent {
  /** The event: equal to the header `webhook-id`, and the same however often it is sent. */
  id: string;
  /** When it was emitted. */
  createdAt: string;
  type: "run.finished";
  data: {
    /** The run, as it is read at `/v1/runs/{runId}`. */
    run: WebhookRun;
  };
}

/** An improvement pass has ended. Nothing sends it yet. */
export interface ImprovementPassFinishedWebhookEvent {
  /** The event: equal to the header `webhook-id`, and the same however often it is sent. */
  id: string;
  /** When it was emitted. */
  createdAt: string;
  type: "improvement-pass.finished";
  data: {
    /** The pass. */
    pass: WebhookImprovementPass;
  };
}

/** An approval waits for a reviewer. */
export interface ApprovalRequestedWebhookEvent {
  /** The event: equal to the header `webhook-id`, and the same however often it is sent. */
  id: string;
  /** When it was emitted. */
  createdAt: string;
  type: "approval.requested";
  data: {
    /** The approval, without what it is about. */
    approval: WebhookApproval;
  };
}

/** A person sent a test. */
export interface TestWebhookEvent {
  /** The event: equal to the header `webhook-id`, and the same however often it is sent. */
  id: string;
  /** When it was emitted. */
  createdAt: string;
  type: "webhook.test";
  data: {
    /** The endpoint that it was sent to. */
    endpointId: string;
    /** Says that it is a test. */
    message: string;
  };
}

/** What `runs.follow` gives. A later server may send other kinds. */
export type RunStreamEvent =
  | RunEvent
  | { kind: "text.delta"; data: TextDelta }
  | { kind: "reasoning.delta"; data: ReasoningDelta };

/** What `changes.follow` gives. A later server may send other kinds. */
export type ChangeStreamEvent = { kind: "changed"; data: Changed };

/** What `approvals.follow` gives. A later server may send other kinds. */
export type ApprovalStreamEvent =
  | (ApprovalEvent & { kind: "approval.waiting" | "approval.assigned" | "approval.closed" })
  | { kind: "stream.start"; data: StreamStart };

/** What `users.list` may be asked. */
export interface UsersListQuery {
  /** With this role in the tenant. */
  tenantRole?: TenantRole;
  /** With this status. */
  status?: UserStatus;
  /** The whole email, in any case. */
  email?: string;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `signIn.ways` may be asked. */
export interface SignInWaysQuery {
  /** The tenant, where the server has several. */
  tenantId?: string;
}

/** What `users.grants` may be asked. */
export interface UsersGrantsQuery {
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
}

/** What `serviceAccounts.list` may be asked. */
export interface ServiceAccountsListQuery {
  /** With this status. */
  status?: UserStatus;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `projects.list` may be asked. */
export interface ProjectsListQuery {
  /** True: those alone that are archived. False: the others. */
  archived?: boolean;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `projects.access.list` may be asked. */
export interface ProjectsAccessListQuery {
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
}

/** What `secrets.list` may be asked. */
export interface SecretsListQuery {
  /** Of this environment alone. */
  environment?: string;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** By name; the first comes first unless asked otherwise. */
  order?: Order;
}

/** What `secretUses.list` may be asked. */
export interface SecretUsesListQuery {
  /** Of the secret of this name alone. */
  name?: string;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `environments.list` may be asked. */
export interface EnvironmentsListQuery {
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
}

/** What `environments.variables.list` may be asked. */
export interface EnvironmentsVariablesListQuery {
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
}

/** What `tools.list` may be asked. */
export interface ToolsListQuery {
  /** In this project. */
  projectId?: string;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `agents.list` may be asked. */
export interface AgentsListQuery {
  /** In this project. */
  projectId?: string;
  /** True: those alone that are archived or whose project is. False: the others. */
  archived?: boolean;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `flows.list` may be asked. */
export interface FlowsListQuery {
  /** In this project. */
  projectId?: string;
  /** Of this id; of each project that has one. */
  flowId?: string;
  /** True: those alone that are archived or whose project is. False: the others. */
  archived?: boolean;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `conversations.list` may be asked. */
export interface ConversationsListQuery {
  /** With this agent. */
  agentId?: string;
  /** In this project. */
  projectId?: string;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `runs.list` may be asked. */
export interface RunsListQuery {
  /** In this project. */
  projectId?: string;
  /** Of this agent. */
  agentId?: string;
  /** In this conversation. */
  conversationId?: string;
  /** With this status. */
  status?: Status;
  /** True: child runs too. False: none of them. Left out: child runs too where `rootRunId`, `parentRunId`, `conversationId` or `requestId` is given, or `origin` is `run`; otherwise none. */
  children?: boolean;
  /** Begun by this. */
  origin?: Origin;
  /** Of this flow, in any version; `agent.turn` for turns of agents. */
  flowId?: string;
  /** Below this run, at any depth; the run itself is not among them. */
  rootRunId?: string;
  /** Begun by this run. */
  parentRunId?: string;
  /** That wait for this. */
  waitingFor?: WaitingFor;
  /** Turns of agents whose version was chosen so. */
  via?: Via;
  /** Dry runs, or those that are none. */
  dryRun?: boolean;
  /** Created then or later (RFC 3339). */
  from?: string;
  /** Created before then (RFC 3339). */
  to?: string;
  /** That this request created: the header `x-request-id` of its answer. Runs below that run are not among them. */
  requestId?: string;
  /** With this label, `key:value`. Given several times: with all of them. The first one leads the search: name the rarest first. */
  label?: string[];
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `runs.progress` may be asked. */
export interface RunsProgressQuery {
  /** Events after this number; 0 begins with the first. */
  after?: number;
  /** Events at most. A page of long events holds fewer. */
  limit?: number;
}

/** What `usage.sum` may be asked. */
export interface UsageSumQuery {
  /** What has sums of its own; given several times: each combination that there is. Left out: one sum of all. */
  by?: UsageGroup[];
  /** Of runs created then or later (RFC 3339); left out: 30 days before `to`. Not more than 92 days before it. */
  from?: string;
  /** Of runs created before then (RFC 3339); left out: now. */
  to?: string;
  /** In this project. */
  projectId?: string;
  /** Of this agent. */
  agentId?: string;
}

/** What `changes.follow` may be asked. */
export interface ChangesFollowQuery {
  /** Of this kind; given several times: of all of them. Left out: of every kind that the caller may list. */
  kind?: ChangeKind[];
  /** In this project. */
  projectId?: string;
}

/** What `approvals.list` may be asked. */
export interface ApprovalsListQuery {
  /** That stand so; left out: those that wait. */
  status?: ApprovalStatus;
  /** Of this reviewer role. */
  role?: string;
  /** In this project. */
  projectId?: string;
  /** Of this run. */
  runId?: string;
  /** Assigned to the caller (`me`), to nobody (`none`), or to this person. */
  assignedTo?: "me" | "none" | string;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `inbox.list` may be asked. */
export interface InboxListQuery {
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
}

/** What a list may be asked. */
export interface ListQuery {
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `webhookEndpoints.deliveries.list` may be asked. */
export interface WebhookEndpointsDeliveriesListQuery {
  /** In this state alone. */
  state?: WebhookDeliveryState;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
  /** The direction. */
  order?: Order;
}

/** What `audit.authz` may be asked. */
export interface AuditAuthzQuery {
  /** Of this actor, as `user:<user id>`. */
  actorSubject?: string;
  /** Of this action: `read`, `write`, `admin` or `sign-in`. */
  action?: string;
  /** On this resource, as `<kind>:<id>`. */
  resource?: string;
  /** With this outcome. */
  outcome?: DecisionOutcome;
  /** Decided then or later (RFC 3339). */
  from?: string;
  /** Decided before then (RFC 3339). */
  to?: string;
  /** About this run. */
  runId?: string;
  /** Of this request: the `requestId` of an error, or the header `x-request-id` of an answer. */
  requestId?: string;
  /** The direction. */
  order?: Order;
  /** The `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
  /** Rows at most. */
  limit?: number;
}
