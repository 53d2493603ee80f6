// From the API description: clients/generate writes this file.

import { path } from "./path.js";

/** @import { Page, Pages } from "./page.js" */
/** @import { CallOptions, FollowOptions, Transport } from "./transport.js" */
/** @import * as types from "./types.js" */

export class UsersEnrolments {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Make another enrolment code for a person, which takes keys:write as well; the one before it ends.
   * Access: admin on user in path.
   * @param {string} userId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Enrolment>}
   */
  async create(userId, options) {
    return this.#transport.call("POST", path`/v1/identity/users/${userId}/enrolments`, {}, options);
  }
}

export class UsersSessions {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List a person's sessions that are open.
   * Access: admin on user in path.
   * @param {string} userId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Session>>}
   */
  list(userId, query, options) {
    return this.#transport.list(path`/v1/identity/users/${userId}/sessions`, query, options);
  }
}

export class UsersIdentities {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List whom a person is at identity providers.
   * Access: admin on user in path.
   * @param {string} userId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Identity>>}
   */
  list(userId, query, options) {
    return this.#transport.list(path`/v1/identity/users/${userId}/identities`, query, options);
  }

  /**
   * Take an identity from a person: the sessions that they opened by it end.
   * Access: admin on user in path.
   * @param {string} userId
   * @param {string} identityId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async unlink(userId, identityId, options) {
    return this.#transport.call("DELETE", path`/v1/identity/users/${userId}/identities/${identityId}`, {}, options);
  }
}

/** The people of the tenant, their enrolment codes and sessions, and what the caller may do. */
export class Users {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.enrolments = new UsersEnrolments(transport);
    this.sessions = new UsersSessions(transport);
    this.identities = new UsersIdentities(transport);
  }

  /**
   * Add a person, which takes keys:write as well; the answer shows once the code that mints their first key.
   * Access: admin on tenant.
   * @param {types.NewUser} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.AddedPerson>}
   */
  async add(body, options) {
    return this.#transport.call("POST", "/v1/identity/users", { body }, options);
  }

  /**
   * List the tenant's people.
   * Access: admin on tenant.
   * @param {types.UsersListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Person>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/identity/users", query, options);
  }

  /**
   * Read a person.
   * Access: admin on user in path.
   * @param {string} userId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Person>}
   */
  async get(userId, options) {
    return this.#transport.call("GET", path`/v1/identity/users/${userId}`, {}, options);
  }

  /**
   * Change a person's name or tenant role.
   * Access: admin on user in path.
   * @param {string} userId
   * @param {types.ChangeUser} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Person>}
   */
  async update(userId, body, options) {
    return this.#transport.call("PATCH", path`/v1/identity/users/${userId}`, { body }, options);
  }

  /**
   * Deactivate a person: their keys and permissions end.
   * Access: admin on user in path.
   * @param {string} userId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Person>}
   */
  async deactivate(userId, options) {
    return this.#transport.call("POST", path`/v1/identity/users/${userId}/deactivate`, {}, options);
  }

  /**
   * End every session of a person, and the enrolment codes that they made; their keys go on.
   * Access: admin on user in path.
   * @param {string} userId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async signOut(userId, options) {
    return this.#transport.call("POST", path`/v1/identity/users/${userId}/sign-out`, {}, options);
  }

  /**
   * List the roles that a user has; the projects page.
   * Access: the user in path, or admin on tenant.
   * @param {string} userId
   * @param {types.UsersGrantsQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Promise<types.Grants>}
   */
  async grants(userId, query, options) {
    return this.#transport.call("GET", path`/v1/identity/users/${userId}/grants`, { query }, options);
  }
}

/** The people of the tenant, their enrolment codes and sessions, and what the caller may do. */
export class Enrolments {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Turn an enrolment code into the person's first key, which is shown once.
   * Access: an enrolment code in the body.
   * @param {types.TakeEnrolment} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.MintedToken>}
   */
  async redeem(body, options) {
    return this.#transport.call("POST", "/v1/identity/enrolments", { body }, options);
  }
}

/** How a person signs in with a browser, on the server's own pages: the answer's cookie carries a session. */
export class SignIn {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Read in which ways one may sign in with a browser, and at which address.
   * Access: open: describes the service, holds no tenant's data.
   * @param {types.SignInWaysQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Promise<types.SignInWays>}
   */
  async ways(query, options) {
    return this.#transport.call("GET", "/v1/sign-in", { query }, options);
  }

  /**
   * Sign in with a bearer token: the answer's cookie carries a session, which ends with the token.
   * Access: what the body has to sign in with, from a page of this server.
   * @param {types.TokenToSignInWith} body
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async byToken(body, options) {
    return this.#transport.call("POST", "/v1/sign-in/token", { body }, options);
  }

  /**
   * Sign in with an enrolment code, which is taken: the answer's cookie carries a session.
   * Access: what the body has to sign in with, from a page of this server.
   * @param {types.CodeToSignInWith} body
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async byEnrolment(body, options) {
    return this.#transport.call("POST", "/v1/sign-in/enrolment", { body }, options);
  }
}

export class MeSessions {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List the caller's own sessions that are open.
   * Access: any bearer token or session.
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Session>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/identity/me/sessions", query, options);
  }

  /**
   * End one of the caller's own sessions; any but the request's takes keys:write.
   * Access: any bearer token or session.
   * @param {string} sessionId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async end(sessionId, options) {
    return this.#transport.call("DELETE", path`/v1/identity/me/sessions/${sessionId}`, {}, options);
  }
}

/** How a person ends the session of a browser. */
export class Me {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.sessions = new MeSessions(transport);
  }

  /**
   * End the session of the request, and say where one signs out at the identity provider, too.
   * Access: a session.
   * @param {CallOptions} [options]
   * @returns {Promise<types.SignedOut>}
   */
  async signOut(options) {
    return this.#transport.call("POST", "/v1/sign-out", {}, options);
  }

  /**
   * Read who the caller is, and by which credential.
   * Access: any bearer token or session.
   * @param {CallOptions} [options]
   * @returns {Promise<types.Me>}
   */
  async get(options) {
    return this.#transport.call("GET", "/v1/identity/me", {}, options);
  }

  /**
   * Who the caller is, and what each role allows.
   * Access: any bearer token or session.
   * @param {CallOptions} [options]
   * @returns {Promise<types.Permissions>}
   */
  async permissions(options) {
    return this.#transport.call("GET", "/v1/identity/me/permissions", {}, options);
  }
}

/** OpenID Connect issuers by which people sign in, the email domains that each speaks for, and the teams of its groups. */
export class IdentityProviders {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Register an identity provider by which people sign in.
   * Access: admin on tenant.
   * @param {types.NewIdentityProvider} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.IdentityProvider>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/identity-providers", { body }, options);
  }

  /**
   * List the tenant's identity providers.
   * Access: admin on tenant.
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.IdentityProvider>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/identity-providers", query, options);
  }

  /**
   * Read an identity provider.
   * Access: admin on identity-provider in path.
   * @param {string} identityProviderId
   * @param {CallOptions} [options]
   * @returns {Promise<types.IdentityProvider>}
   */
  async get(identityProviderId, options) {
    return this.#transport.call("GET", path`/v1/identity-providers/${identityProviderId}`, {}, options);
  }

  /**
   * Change an identity provider: what is left out stays, a list replaces the one that stands.
   * Access: admin on identity-provider in path.
   * @param {string} identityProviderId
   * @param {types.ChangeIdentityProvider} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.IdentityProvider>}
   */
  async update(identityProviderId, body, options) {
    return this.#transport.call("PATCH", path`/v1/identity-providers/${identityProviderId}`, { body }, options);
  }

  /**
   * Delete an identity provider: its identities, the sessions it opened, and the memberships of its groups end.
   * Access: admin on identity-provider in path.
   * @param {string} identityProviderId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async delete(identityProviderId, options) {
    return this.#transport.call("DELETE", path`/v1/identity-providers/${identityProviderId}`, {}, options);
  }

  /**
   * Ask an identity provider all that a sign-in needs of it, and say of each step what was found.
   * Access: admin on identity-provider in path.
   * @param {string} identityProviderId
   * @param {CallOptions} [options]
   * @returns {Promise<types.IdentityProviderCheck>}
   */
  async check(identityProviderId, options) {
    return this.#transport.call("POST", path`/v1/identity-providers/${identityProviderId}/check`, {}, options);
  }
}

/** Who may sign in with a token, and how long sessions last. */
export class SignInSettings {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Read who may sign in with a token, and how long sessions last.
   * Access: admin on tenant.
   * @param {CallOptions} [options]
   * @returns {Promise<types.SignInSettings>}
   */
  async get(options) {
    return this.#transport.call("GET", "/v1/sign-in-settings", {}, options);
  }

  /**
   * Set who may sign in with a token, and how long sessions last: stricter than the server, or as it says.
   * Access: admin on tenant.
   * @param {types.NewSignInSettings} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.SignInSettings>}
   */
  async set(body, options) {
    return this.#transport.call("PUT", "/v1/sign-in-settings", { body }, options);
  }
}

export class ServiceAccountsTokens {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Mint a key of a service account; it is shown once.
   * Access: admin on service-account in path.
   * @param {string} serviceAccountId
   * @param {types.NewToken} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.MintedToken>}
   */
  async create(serviceAccountId, body, options) {
    return this.#transport.call("POST", path`/v1/service-accounts/${serviceAccountId}/tokens`, { body }, options);
  }

  /**
   * List the keys of a service account.
   * Access: admin on service-account in path.
   * @param {string} serviceAccountId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Token>>}
   */
  list(serviceAccountId, query, options) {
    return this.#transport.list(path`/v1/service-accounts/${serviceAccountId}/tokens`, query, options);
  }

  /**
   * Revoke a key of a service account.
   * Access: admin on service-account in path.
   * @param {string} serviceAccountId
   * @param {string} tokenId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async revoke(serviceAccountId, tokenId, options) {
    return this.#transport.call("DELETE", path`/v1/service-accounts/${serviceAccountId}/tokens/${tokenId}`, {}, options);
  }
}

/** Accounts of programs, and their bearer tokens. */
export class ServiceAccounts {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.tokens = new ServiceAccountsTokens(transport);
  }

  /**
   * Add a service account.
   * Access: admin on tenant.
   * @param {types.ServiceAccountName} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.ServiceAccount>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/service-accounts", { body }, options);
  }

  /**
   * List the tenant's service accounts.
   * Access: admin on tenant.
   * @param {types.ServiceAccountsListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.ServiceAccount>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/service-accounts", query, options);
  }

  /**
   * Read a service account.
   * Access: admin on service-account in path.
   * @param {string} serviceAccountId
   * @param {CallOptions} [options]
   * @returns {Promise<types.ServiceAccount>}
   */
  async get(serviceAccountId, options) {
    return this.#transport.call("GET", path`/v1/service-accounts/${serviceAccountId}`, {}, options);
  }

  /**
   * Rename a service account.
   * Access: admin on service-account in path.
   * @param {string} serviceAccountId
   * @param {types.ServiceAccountName} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.ServiceAccount>}
   */
  async update(serviceAccountId, body, options) {
    return this.#transport.call("PATCH", path`/v1/service-accounts/${serviceAccountId}`, { body }, options);
  }

  /**
   * Deactivate a service account: its keys and permissions end.
   * Access: admin on service-account in path.
   * @param {string} serviceAccountId
   * @param {CallOptions} [options]
   * @returns {Promise<types.ServiceAccount>}
   */
  async deactivate(serviceAccountId, options) {
    return this.#transport.call("POST", path`/v1/service-accounts/${serviceAccountId}/deactivate`, {}, options);
  }
}

/** The caller's own bearer tokens, and public run tokens for browsers. */
export class Tokens {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Mint a bearer token, which may do no more than the one that mints it; it is shown once.
   * Access: any bearer token or session.
   * @param {types.NewToken} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.MintedToken>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/tokens", { body }, options);
  }

  /**
   * List the caller's own bearer tokens; with one that is limited to a project, that project's.
   * Access: any bearer token or session.
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Token>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/tokens", query, options);
  }

  /**
   * Revoke one of the caller's own bearer tokens; any but the request's takes keys:write.
   * Access: any bearer token or session.
   * @param {string} tokenId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async revoke(tokenId, options) {
    return this.#transport.call("DELETE", path`/v1/tokens/${tokenId}`, {}, options);
  }

  /**
   * Mint a short-lived, read-only token for following named runs in a browser.
   * Access: any bearer token or session.
   * @param {types.NewPublicToken} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.MintedPublicToken>}
   */
  async createPublic(body, options) {
    return this.#transport.call("POST", "/v1/tokens/public", { body }, options);
  }
}

export class OrgsAdmins {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Make a person an admin of an org; one who is stays as they are.
   * Access: admin on org in path.
   * @param {string} orgId
   * @param {types.AddOrgAdmin} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.OrgAdmin>}
   */
  async add(orgId, body, options) {
    return this.#transport.call("POST", path`/v1/orgs/${orgId}/admins`, { body }, options);
  }

  /**
   * List the admins of an org.
   * Access: admin on org in path.
   * @param {string} orgId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.OrgAdmin>>}
   */
  list(orgId, query, options) {
    return this.#transport.list(path`/v1/orgs/${orgId}/admins`, query, options);
  }

  /**
   * Take an org from one of its admins.
   * Access: admin on org in path.
   * @param {string} orgId
   * @param {string} userId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async remove(orgId, userId, options) {
    return this.#transport.call("DELETE", path`/v1/orgs/${orgId}/admins/${userId}`, {}, options);
  }
}

export class OrgsProjects {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Make a project in an org; its creator becomes its owner.
   * Access: admin on org in path.
   * @param {string} orgId
   * @param {types.NewOrgProject} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Project>}
   */
  async create(orgId, body, options) {
    return this.#transport.call("POST", path`/v1/orgs/${orgId}/projects`, { body }, options);
  }
}

/** Groups of projects with admins of their own. */
export class Orgs {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.admins = new OrgsAdmins(transport);
    this.projects = new OrgsProjects(transport);
  }

  /**
   * Make an org.
   * Access: admin on tenant.
   * @param {types.OrgName} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Org>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/orgs", { body }, options);
  }

  /**
   * List the orgs: a tenant admin's are all, another's those that they are an admin of.
   * Access: readable orgs.
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Org>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/orgs", query, options);
  }

  /**
   * Read an org.
   * Access: read on org in path.
   * @param {string} orgId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Org>}
   */
  async get(orgId, options) {
    return this.#transport.call("GET", path`/v1/orgs/${orgId}`, {}, options);
  }

  /**
   * Rename an org.
   * Access: admin on org in path.
   * @param {string} orgId
   * @param {types.OrgName} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Org>}
   */
  async update(orgId, body, options) {
    return this.#transport.call("PATCH", path`/v1/orgs/${orgId}`, { body }, options);
  }
}

/** Who may decide about approvals. */
export class Reviewers {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Give a person a reviewer role; one that is held stays.
   * Access: admin on tenant.
   * @param {types.RegisterReviewer} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Reviewer>}
   */
  async register(body, options) {
    return this.#transport.call("POST", "/v1/reviewers", { body }, options);
  }

  /**
   * List the reviewers with their roles.
   * Access: admin on tenant.
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Reviewer>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/reviewers", query, options);
  }

  /**
   * Take a reviewer role away.
   * Access: admin on user in path.
   * @param {string} userId
   * @param {string} role
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async remove(userId, role, options) {
    return this.#transport.call("DELETE", path`/v1/reviewers/${userId}/${role}`, {}, options);
  }
}

export class ProjectsMemberships {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Add somebody to a project; the same role once more answers the membership as it is.
   * Access: admin on project in path.
   * @param {string} projectId
   * @param {types.AddMembership} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Membership>}
   */
  async add(projectId, body, options) {
    return this.#transport.call("POST", path`/v1/projects/${projectId}/memberships`, { body }, options);
  }

  /**
   * List the members of a project.
   * Access: write on project in path.
   * @param {string} projectId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Membership>>}
   */
  list(projectId, query, options) {
    return this.#transport.list(path`/v1/projects/${projectId}/memberships`, query, options);
  }

  /**
   * Change a member's role.
   * Access: admin on project in path.
   * @param {string} projectId
   * @param {string} userId
   * @param {types.ChangeMembership} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Membership>}
   */
  async updateRole(projectId, userId, body, options) {
    return this.#transport.call("PATCH", path`/v1/projects/${projectId}/memberships/${userId}`, { body }, options);
  }

  /**
   * Remove a member from a project.
   * Access: admin on project in path.
   * @param {string} projectId
   * @param {string} userId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async remove(projectId, userId, options) {
    return this.#transport.call("DELETE", path`/v1/projects/${projectId}/memberships/${userId}`, {}, options);
  }
}

export class ProjectsTeamGrants {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Give a team a role on a project; the same role once more answers the grant as it is.
   * Access: admin on project in path, and read on team in body.
   * @param {string} projectId
   * @param {types.NewTeamGrant} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.TeamGrant>}
   */
  async add(projectId, body, options) {
    return this.#transport.call("POST", path`/v1/projects/${projectId}/team-grants`, { body }, options);
  }

  /**
   * List the teams with a role on a project.
   * Access: write on project in path.
   * @param {string} projectId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.TeamGrant>>}
   */
  list(projectId, query, options) {
    return this.#transport.list(path`/v1/projects/${projectId}/team-grants`, query, options);
  }

  /**
   * Change a team's role on a project.
   * Access: admin on project in path.
   * @param {string} projectId
   * @param {string} teamId
   * @param {types.ChangeTeamGrant} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.TeamGrant>}
   */
  async updateRole(projectId, teamId, body, options) {
    return this.#transport.call("PATCH", path`/v1/projects/${projectId}/team-grants/${teamId}`, { body }, options);
  }

  /**
   * Take a team's role on a project.
   * Access: admin on project in path.
   * @param {string} projectId
   * @param {string} teamId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async remove(projectId, teamId, options) {
    return this.#transport.call("DELETE", path`/v1/projects/${projectId}/team-grants/${teamId}`, {}, options);
  }
}

export class ProjectsAccess {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List who has access to a project, by every way in; owners first, then by role and name.
   * Access: write on project in path.
   * @param {string} projectId
   * @param {types.ProjectsAccessListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.AccessEntry>>}
   */
  list(projectId, query, options) {
    return this.#transport.list(path`/v1/projects/${projectId}/access`, query, options);
  }
}

export class ProjectsPolicies {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Read a project's policy: its newest version.
   * Access: read on project in path.
   * @param {string} projectId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Policy>}
   */
  async get(projectId, options) {
    return this.#transport.call("GET", path`/v1/projects/${projectId}/policies`, {}, options);
  }

  /**
   * Put a project's policy: the next version, which judges from then on, also runs that are under way.
   * Access: admin on project in path.
   * @param {string} projectId
   * @param {types.PutPolicy} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Policy>}
   */
  async put(projectId, body, options) {
    return this.#transport.call("PUT", path`/v1/projects/${projectId}/policies`, { body }, options);
  }
}

/** Projects hold agents, tools, conversations and runs. Who may do what in them, directly and through teams. */
export class Projects {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.memberships = new ProjectsMemberships(transport);
    this.teamGrants = new ProjectsTeamGrants(transport);
    this.access = new ProjectsAccess(transport);
    this.policies = new ProjectsPolicies(transport);
  }

  /**
   * Make a project; its creator becomes its owner.
   * Access: write on tenant.
   * @param {types.ProjectName} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Project>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/projects", { body }, options);
  }

  /**
   * List the projects that the caller may read.
   * Access: readable projects.
   * @param {types.ProjectsListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Project>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/projects", query, options);
  }

  /**
   * Read a project.
   * Access: read on project in path.
   * @param {string} projectId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Project>}
   */
  async get(projectId, options) {
    return this.#transport.call("GET", path`/v1/projects/${projectId}`, {}, options);
  }

  /**
   * Rename a project.
   * Access: admin on project in path.
   * @param {string} projectId
   * @param {types.ProjectName} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Project>}
   */
  async update(projectId, body, options) {
    return this.#transport.call("PATCH", path`/v1/projects/${projectId}`, { body }, options);
  }

  /**
   * Archive a project: lists leave it and its agents out, nothing new is made or started in it; runs under way go on.
   * Access: admin on project in path.
   * @param {string} projectId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Project>}
   */
  async archive(projectId, options) {
    return this.#transport.call("POST", path`/v1/projects/${projectId}/archive`, {}, options);
  }

  /**
   * Bring an archived project back.
   * Access: admin on project in path.
   * @param {string} projectId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Project>}
   */
  async unarchive(projectId, options) {
    return this.#transport.call("POST", path`/v1/projects/${projectId}/unarchive`, {}, options);
  }
}

export class TeamsProjectGrants {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List the projects that a team has a role on.
   * Access: admin on team in path.
   * @param {string} teamId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.TeamGrant>>}
   */
  list(teamId, query, options) {
    return this.#transport.list(path`/v1/teams/${teamId}/project-grants`, query, options);
  }
}

export class TeamsMemberships {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Add somebody to a team; the same role once more answers the membership as it is.
   * Access: admin on team in path.
   * @param {string} teamId
   * @param {types.AddTeamMembership} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.TeamMembership>}
   */
  async add(teamId, body, options) {
    return this.#transport.call("POST", path`/v1/teams/${teamId}/memberships`, { body }, options);
  }

  /**
   * List who is in a team.
   * Access: admin on team in path.
   * @param {string} teamId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.TeamMembership>>}
   */
  list(teamId, query, options) {
    return this.#transport.list(path`/v1/teams/${teamId}/memberships`, query, options);
  }

  /**
   * Change the role of somebody in a team.
   * Access: admin on team in path.
   * @param {string} teamId
   * @param {string} userId
   * @param {types.ChangeTeamMembership} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.TeamMembership>}
   */
  async updateRole(teamId, userId, body, options) {
    return this.#transport.call("PATCH", path`/v1/teams/${teamId}/memberships/${userId}`, { body }, options);
  }

  /**
   * Remove somebody from a team.
   * Access: admin on team in path.
   * @param {string} teamId
   * @param {string} userId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async remove(teamId, userId, options) {
    return this.#transport.call("DELETE", path`/v1/teams/${teamId}/memberships/${userId}`, {}, options);
  }
}

/** People and service accounts that get roles on projects together. */
export class Teams {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.projectGrants = new TeamsProjectGrants(transport);
    this.memberships = new TeamsMemberships(transport);
  }

  /**
   * Make a team; its creator becomes its admin.
   * Access: admin on tenant.
   * @param {types.NewTeam} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Team>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/teams", { body }, options);
  }

  /**
   * List the teams that the caller may read.
   * Access: readable teams.
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Team>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/teams", query, options);
  }

  /**
   * Read a team.
   * Access: read on team in path.
   * @param {string} teamId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Team>}
   */
  async get(teamId, options) {
    return this.#transport.call("GET", path`/v1/teams/${teamId}`, {}, options);
  }

  /**
   * Change a team's name or description; what is left out stays, and the slug does.
   * Access: admin on team in path.
   * @param {string} teamId
   * @param {types.ChangeTeam} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Team>}
   */
  async update(teamId, body, options) {
    return this.#transport.call("PATCH", path`/v1/teams/${teamId}`, { body }, options);
  }

  /**
   * Delete a team, and with it the access that it gave.
   * Access: admin on team in path.
   * @param {string} teamId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async delete(teamId, options) {
    return this.#transport.call("DELETE", path`/v1/teams/${teamId}`, {}, options);
  }
}

/** Values that model providers and webhooks use by name. They are never shown. */
export class Secrets {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Put a secret: its value takes the place of the one that stands.
   * Access: admin on tenant.
   * @param {string} environment
   * @param {string} name
   * @param {types.PutSecret} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Secret>}
   */
  async put(environment, name, body, options) {
    return this.#transport.call("PUT", path`/v1/secrets/${environment}/${name}`, { body }, options);
  }

  /**
   * Read what is known of a secret, without its value.
   * Access: admin on tenant.
   * @param {string} environment
   * @param {string} name
   * @param {CallOptions} [options]
   * @returns {Promise<types.Secret>}
   */
  async get(environment, name, options) {
    return this.#transport.call("GET", path`/v1/secrets/${environment}/${name}`, {}, options);
  }

  /**
   * Delete a secret with its versions.
   * Access: admin on tenant.
   * @param {string} environment
   * @param {string} name
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async delete(environment, name, options) {
    return this.#transport.call("DELETE", path`/v1/secrets/${environment}/${name}`, {}, options);
  }

  /**
   * List the secrets by environment and name, without their values.
   * Access: admin on tenant.
   * @param {types.SecretsListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Secret>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/secrets", query, options);
  }
}

/** Where a secret may be sent, by name: to which HTTP servers, for which project. */
export class SecretUses {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Allow a secret to be sent to a target.
   * Access: admin on tenant.
   * @param {types.NewSecretUse} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.SecretUse>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/secret-uses", { body }, options);
  }

  /**
   * List the uses of secrets.
   * Access: admin on tenant.
   * @param {types.SecretUsesListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.SecretUse>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/secret-uses", query, options);
  }

  /**
   * Delete a use of a secret: calls of tools that need it are not made any more, also those of runs under way.
   * Access: admin on secret-use in path.
   * @param {string} secretUseId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async delete(secretUseId, options) {
    return this.#transport.call("DELETE", path`/v1/secret-uses/${secretUseId}`, {}, options);
  }
}

export class EnvironmentsVariables {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List the variables of an environment by name.
   * Access: read on tenant.
   * @param {string} environment
   * @param {types.EnvironmentsVariablesListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Variable>>}
   */
  list(environment, query, options) {
    return this.#transport.list(path`/v1/environments/${environment}/variables`, query, options);
  }

  /**
   * Put a variable: its value takes the place of the one that stands; runs that began before keep theirs.
   * Access: admin on tenant.
   * @param {string} environment
   * @param {string} name
   * @param {types.PutVariable} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Variable>}
   */
  async put(environment, name, body, options) {
    return this.#transport.call("PUT", path`/v1/environments/${environment}/variables/${name}`, { body }, options);
  }

  /**
   * Read a variable.
   * Access: read on tenant.
   * @param {string} environment
   * @param {string} name
   * @param {CallOptions} [options]
   * @returns {Promise<types.Variable>}
   */
  async get(environment, name, options) {
    return this.#transport.call("GET", path`/v1/environments/${environment}/variables/${name}`, {}, options);
  }

  /**
   * Delete a variable; runs that began before keep it.
   * Access: admin on tenant.
   * @param {string} environment
   * @param {string} name
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async delete(environment, name, options) {
    return this.#transport.call("DELETE", path`/v1/environments/${environment}/variables/${name}`, {}, options);
  }
}

/** Environments and their variables, which flows read. They are no secrets. */
export class Environments {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.variables = new EnvironmentsVariables(transport);
  }

  /**
   * List the environments by name.
   * Access: read on tenant.
   * @param {types.EnvironmentsListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Environment>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/environments", query, options);
  }
}

/** The guardrails of a tenant and of its projects, in versions that never change. No agent takes them away. */
export class Policies {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Read the tenant's policy: its newest version.
   * Access: read on tenant.
   * @param {CallOptions} [options]
   * @returns {Promise<types.Policy>}
   */
  async get(options) {
    return this.#transport.call("GET", "/v1/policies", {}, options);
  }

  /**
   * Put the tenant's policy: the next version, which judges from then on, also runs that are under way.
   * Access: admin on tenant.
   * @param {types.PutPolicy} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Policy>}
   */
  async put(body, options) {
    return this.#transport.call("PUT", "/v1/policies", { body }, options);
  }
}

/** Checks of what goes into a run and of what comes out, tried on a text. */
export class Guardrails {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Have guardrails judge a text: those of the policies that stand, then the ones given; nothing is kept.
   * Access: write on project in body.
   * @param {types.TryGuardrails} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.TriedGuardrails>}
   */
  async try(body, options) {
    return this.#transport.call("POST", "/v1/guardrails/try", { body }, options);
  }
}

/** Servers of models that agents use, with their models and prices. */
export class ModelProviders {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Register a model provider.
   * Access: admin on tenant.
   * @param {types.NewModelProvider} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.ModelProvider>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/model-providers", { body }, options);
  }

  /**
   * List the model providers that the caller may read.
   * Access: readable model-providers.
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.ModelProvider>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/model-providers", query, options);
  }

  /**
   * Read a model provider.
   * Access: read on model-provider in path.
   * @param {string} modelProviderId
   * @param {CallOptions} [options]
   * @returns {Promise<types.ModelProvider>}
   */
  async get(modelProviderId, options) {
    return this.#transport.call("GET", path`/v1/model-providers/${modelProviderId}`, {}, options);
  }

  /**
   * Change a model provider: what is left out stays, a list of models replaces the one that stands.
   * Access: admin on model-provider in path.
   * @param {string} modelProviderId
   * @param {types.ChangeModelProvider} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.ModelProvider>}
   */
  async update(modelProviderId, body, options) {
    return this.#transport.call("PATCH", path`/v1/model-providers/${modelProviderId}`, { body }, options);
  }

  /**
   * Delete a model provider that no version of an agent uses.
   * Access: admin on model-provider in path.
   * @param {string} modelProviderId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async delete(modelProviderId, options) {
    return this.#transport.call("DELETE", path`/v1/model-providers/${modelProviderId}`, {}, options);
  }

  /**
   * Ask a model provider all that an agent needs of it, and say of each step what was found.
   * Access: admin on model-provider in path.
   * @param {string} modelProviderId
   * @param {types.CheckModelProvider} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.ModelProviderCheck>}
   */
  async check(modelProviderId, body, options) {
    return this.#transport.call("POST", path`/v1/model-providers/${modelProviderId}/check`, { body }, options);
  }
}

/** HTTP tools of a project, which its agents may call. */
export class Tools {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Register a tool in a project: an HTTP server, an agent or a flow.
   * Access: admin on project in body.
   * @param {types.NewTool} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Tool>}
   */
  async register(body, options) {
    return this.#transport.call("POST", "/v1/tools", { body }, options);
  }

  /**
   * List the tools that the caller may read.
   * Access: readable tools.
   * @param {types.ToolsListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Tool>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/tools", query, options);
  }

  /**
   * Read a tool.
   * Access: read on tool in path.
   * @param {string} toolId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Tool>}
   */
  async get(toolId, options) {
    return this.#transport.call("GET", path`/v1/tools/${toolId}`, {}, options);
  }

  /**
   * Delete a tool that no version of an agent or of a flow calls.
   * Access: admin on tool in path.
   * @param {string} toolId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async delete(toolId, options) {
    return this.#transport.call("DELETE", path`/v1/tools/${toolId}`, {}, options);
  }
}

export class AgentsVersions {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Make a version of an agent; it is never changed.
   * Access: write on agent in path.
   * @param {string} agentId
   * @param {types.NewAgentVersion} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.AgentVersion>}
   */
  async create(agentId, body, options) {
    return this.#transport.call("POST", path`/v1/agents/${agentId}/versions`, { body }, options);
  }

  /**
   * List the versions of an agent, in the order of making.
   * Access: read on agent in path.
   * @param {string} agentId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.ListedAgentVersion>>}
   */
  list(agentId, query, options) {
    return this.#transport.list(path`/v1/agents/${agentId}/versions`, query, options);
  }

  /**
   * Read a version of an agent.
   * Access: read on agent in path.
   * @param {string} agentId
   * @param {string} version
   * @param {CallOptions} [options]
   * @returns {Promise<types.AgentVersion>}
   */
  async get(agentId, version, options) {
    return this.#transport.call("GET", path`/v1/agents/${agentId}/versions/${version}`, {}, options);
  }
}

/** Agents of a project: what each is told, in versions that never change, and which version is live. */
export class Agents {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.versions = new AgentsVersions(transport);
  }

  /**
   * Register an agent in a project.
   * Access: admin on project in body.
   * @param {types.NewAgent} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Agent>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/agents", { body }, options);
  }

  /**
   * List the agents that the caller may read.
   * Access: readable agents.
   * @param {types.AgentsListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Agent>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/agents", query, options);
  }

  /**
   * Read an agent.
   * Access: read on agent in path.
   * @param {string} agentId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Agent>}
   */
  async get(agentId, options) {
    return this.#transport.call("GET", path`/v1/agents/${agentId}`, {}, options);
  }

  /**
   * Change an agent's name or description; what is left out stays.
   * Access: admin on agent in path.
   * @param {string} agentId
   * @param {types.ChangeAgent} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Agent>}
   */
  async update(agentId, body, options) {
    return this.#transport.call("PATCH", path`/v1/agents/${agentId}`, { body }, options);
  }

  /**
   * Make a version the live one of the agent's project; null leaves none live.
   * Access: admin on agent in path.
   * @param {string} agentId
   * @param {types.Promotion} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Agent>}
   */
  async promote(agentId, body, options) {
    return this.#transport.call("POST", path`/v1/agents/${agentId}/promote`, { body }, options);
  }

  /**
   * Archive an agent: lists leave it out, it starts nothing and gets no versions; runs under way go on.
   * Access: admin on agent in path.
   * @param {string} agentId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Agent>}
   */
  async archive(agentId, options) {
    return this.#transport.call("POST", path`/v1/agents/${agentId}/archive`, {}, options);
  }

  /**
   * Bring an archived agent back.
   * Access: admin on agent in path.
   * @param {string} agentId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Agent>}
   */
  async unarchive(agentId, options) {
    return this.#transport.call("POST", path`/v1/agents/${agentId}/unarchive`, {}, options);
  }
}

export class FlowsVersions {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Make a version of a flow; it is never changed. The same one once more answers what stands.
   * Access: write on flow in path.
   * @param {string} id
   * @param {types.NewFlowVersion} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.MadeFlowVersion>}
   */
  async create(id, body, options) {
    return this.#transport.call("POST", path`/v1/flows/${id}/versions`, { body }, options);
  }

  /**
   * List the versions of a flow, in the order of making.
   * Access: read on flow in path.
   * @param {string} id
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.ListedFlowVersion>>}
   */
  list(id, query, options) {
    return this.#transport.list(path`/v1/flows/${id}/versions`, query, options);
  }

  /**
   * Read a version of a flow.
   * Access: read on flow in path.
   * @param {string} id
   * @param {string} version
   * @param {CallOptions} [options]
   * @returns {Promise<types.FlowVersion>}
   */
  async get(id, version, options) {
    return this.#transport.call("GET", path`/v1/flows/${id}/versions/${version}`, {}, options);
  }

  /**
   * Read the tasks of a version as nested boxes, with what follows each.
   * Access: read on flow in path.
   * @param {string} id
   * @param {string} version
   * @param {CallOptions} [options]
   * @returns {Promise<types.FlowNode>}
   */
  async graph(id, version, options) {
    return this.#transport.call("GET", path`/v1/flows/${id}/versions/${version}/graph`, {}, options);
  }
}

/** Flows of a project: what each does, step by step, in versions that never change, and which version is live. */
export class Flows {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.versions = new FlowsVersions(transport);
  }

  /**
   * Check a definition in a project; nothing is stored.
   * Access: write on project in body.
   * @param {types.NewFlow} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.CheckedFlow>}
   */
  async validate(body, options) {
    return this.#transport.call("POST", "/v1/flows/validate", { body }, options);
  }

  /**
   * Register a flow in a project, with its first version.
   * Access: admin on project in body.
   * @param {types.NewFlow} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.RegisteredFlow>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/flows", { body }, options);
  }

  /**
   * List the flows that the caller may read.
   * Access: readable flows.
   * @param {types.FlowsListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Flow>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/flows", query, options);
  }

  /**
   * Read a flow.
   * Access: read on flow in path.
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<types.Flow>}
   */
  async get(id, options) {
    return this.#transport.call("GET", path`/v1/flows/${id}`, {}, options);
  }

  /**
   * Change a flow's title or description; what is left out stays.
   * Access: admin on flow in path.
   * @param {string} id
   * @param {types.ChangeFlow} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Flow>}
   */
  async update(id, body, options) {
    return this.#transport.call("PATCH", path`/v1/flows/${id}`, { body }, options);
  }

  /**
   * Make a version the live one of the flow's project; null leaves none live.
   * Access: admin on flow in path.
   * @param {string} id
   * @param {types.Promotion} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Flow>}
   */
  async promote(id, body, options) {
    return this.#transport.call("POST", path`/v1/flows/${id}/promote`, { body }, options);
  }

  /**
   * Archive a flow: lists leave it out, it starts nothing and gets no versions; runs under way go on.
   * Access: admin on flow in path.
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<types.Flow>}
   */
  async archive(id, options) {
    return this.#transport.call("POST", path`/v1/flows/${id}/archive`, {}, options);
  }

  /**
   * Bring an archived flow back.
   * Access: admin on flow in path.
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<types.Flow>}
   */
  async unarchive(id, options) {
    return this.#transport.call("POST", path`/v1/flows/${id}/unarchive`, {}, options);
  }
}

export class ConversationsMessages {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List the messages of a conversation.
   * Access: read on conversation in path.
   * @param {string} conversationId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.ConversationMessage>>}
   */
  list(conversationId, query, options) {
    return this.#transport.list(path`/v1/conversations/${conversationId}/messages`, query, options);
  }
}

/** Conversations with an agent: runs that know what was said before. */
export class Conversations {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.messages = new ConversationsMessages(transport);
  }

  /**
   * Begin a conversation with an agent.
   * Access: write on agent in body.
   * @param {types.NewConversation} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Conversation>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/conversations", { body }, options);
  }

  /**
   * List the conversations that the caller may read.
   * Access: readable conversations.
   * @param {types.ConversationsListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Conversation>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/conversations", query, options);
  }

  /**
   * Read a conversation.
   * Access: read on conversation in path.
   * @param {string} conversationId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Conversation>}
   */
  async get(conversationId, options) {
    return this.#transport.call("GET", path`/v1/conversations/${conversationId}`, {}, options);
  }

  /**
   * Erase a conversation: its messages, and what its runs were given, said and answered. Their rows stay.
   * Access: admin on conversation in path, or write on it by who began it.
   * @param {string} conversationId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Conversation>}
   */
  async erase(conversationId, options) {
    return this.#transport.call("DELETE", path`/v1/conversations/${conversationId}`, {}, options);
  }
}

export class RunsSteps {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List the steps of a run, with what they answered.
   * Access: read on run in path.
   * @param {string} runId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.RunStep>>}
   */
  list(runId, query, options) {
    return this.#transport.list(path`/v1/runs/${runId}/steps`, query, options);
  }
}

export class RunsChecks {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List the checks that guardrails made of a run, in the order of steps, attempts and checks; never the text.
   * Access: read on run in path.
   * @param {string} runId
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.RunCheck>>}
   */
  list(runId, query, options) {
    return this.#transport.list(path`/v1/runs/${runId}/checks`, query, options);
  }
}

/** A run is one turn of an agent. Start it, follow it while it goes on, read what came of it, cancel it. */
export class Runs {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.steps = new RunsSteps(transport);
    this.checks = new RunsChecks(transport);
  }

  /**
   * Start a run: an agent's turn, or a flow.
   * Access: write on agent in body, or write on flow in body.
   * @param {types.StartRun | types.StartFlow} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.StartedRun>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/runs", { body, takesKey: true }, options);
  }

  /**
   * List the runs that the caller may read.
   * Access: readable runs.
   * @param {types.RunsListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Run>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/runs", query, options);
  }

  /**
   * Read a run.
   * Access: read on run in path.
   * @param {string} runId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Run>}
   */
  async get(runId, options) {
    return this.#transport.call("GET", path`/v1/runs/${runId}`, {}, options);
  }

  /**
   * Read a run's input and output.
   * Access: read on run in path.
   * @param {string} runId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Payload>}
   */
  async payload(runId, options) {
    return this.#transport.call("GET", path`/v1/runs/${runId}/payload`, {}, options);
  }

  /**
   * Ask a run to end; a finished run is answered as it is.
   * Access: write on run in path.
   * @param {string} runId
   * @param {CallOptions} [options]
   * @returns {Promise<types.Run>}
   */
  async cancel(runId, options) {
    return this.#transport.call("POST", path`/v1/runs/${runId}/cancel`, {}, options);
  }

  /**
   * Read a run's progress: the run, and a page of its events.
   * Access: read on run, or a public token of the run.
   * @param {string} runId
   * @param {types.RunsProgressQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Promise<types.Progress>}
   */
  async progress(runId, query, options) {
    return this.#transport.call("GET", path`/v1/runs/${runId}/progress`, { query }, options);
  }

  /**
   * Follow a run's progress as server-sent events.
   * Access: read on run, or a public token of the run.
   * @param {string} runId
   * @param {FollowOptions} [options]
   * @returns {AsyncGenerator<types.RunStreamEvent, void, undefined>}
   */
  follow(runId, options) {
    return this.#transport.follow(path`/v1/runs/${runId}/progress/stream`, options);
  }

  /**
   * Read where a run stands: what it waits for, and of a flow the tasks under way with their data.
   * Access: read on run in path.
   * @param {string} runId
   * @param {CallOptions} [options]
   * @returns {Promise<types.RunState>}
   */
  async state(runId, options) {
    return this.#transport.call("GET", path`/v1/runs/${runId}/state`, {}, options);
  }

  /**
   * Take a failed run up again: a new run, which goes on after the last step that was done.
   * Access: write on run in path.
   * @param {string} runId
   * @param {types.RetryRun} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.StartedRun>}
   */
  async retry(runId, body, options) {
    return this.#transport.call("POST", path`/v1/runs/${runId}/retry`, { body, takesKey: true }, options);
  }
}

/** What model calls used and cost, summed over days, projects, agents and models. */
export class Usage {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Sum what the model calls of the runs used that the caller may read; a run counts on the day on which it was created.
   * Access: readable runs.
   * @param {types.UsageSumQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Promise<types.UsageReport>}
   */
  async sum(query, options) {
    return this.#transport.call("GET", "/v1/usage", { query }, options);
  }
}

/** Hints that something changed, so that a page reads it again. */
export class Changes {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * Be told, as server-sent events, which of the objects change that the caller may list.
   * Access: readable changes.
   * @param {types.ChangesFollowQuery} [query]
   * @param {FollowOptions} [options]
   * @returns {AsyncGenerator<types.ChangeStreamEvent, void, undefined>}
   */
  follow(query, options) {
    return this.#transport.follow("/v1/changes/stream", options, query);
  }
}

/** What runs ask reviewers, and what these decide. */
export class Approvals {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List the approvals of the caller's reviewer roles, those that wait unless asked otherwise.
   * Access: a reviewer.
   * @param {types.ApprovalsListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.Approval>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/approvals", query, options);
  }

  /**
   * Follow what happens to the approvals of the caller's reviewer roles as server-sent events.
   * Access: a reviewer.
   * @param {FollowOptions} [options]
   * @returns {AsyncGenerator<types.ApprovalStreamEvent, void, undefined>}
   */
  follow(options) {
    return this.#transport.follow("/v1/approvals/stream", options);
  }

  /**
   * Read an approval with what it is about.
   * Access: a reviewer with the role of approval in path.
   * @param {string} approvalId
   * @param {CallOptions} [options]
   * @returns {Promise<types.WholeApproval>}
   */
  async get(approvalId, options) {
    return this.#transport.call("GET", path`/v1/approvals/${approvalId}`, {}, options);
  }

  /**
   * Approve or reject; the same decision of the same reviewer again changes nothing.
   * Access: a reviewer with the role of approval in path who did not start the run.
   * @param {string} approvalId
   * @param {types.DecideApproval} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.WholeApproval>}
   */
  async decide(approvalId, body, options) {
    return this.#transport.call("POST", path`/v1/approvals/${approvalId}/decide`, { body }, options);
  }

  /**
   * Assign an approval that waits to a reviewer with its role, or to nobody.
   * Access: a reviewer with the role of approval in path who did not start the run.
   * @param {string} approvalId
   * @param {types.AssignApproval} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Approval>}
   */
  async assign(approvalId, body, options) {
    return this.#transport.call("POST", path`/v1/approvals/${approvalId}/assign`, { body }, options);
  }

  /**
   * Close an approval that waits, and open another for another role in its place.
   * Access: a reviewer with the role of approval in path who did not start the run.
   * @param {string} approvalId
   * @param {types.EscalateApproval} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Approval>}
   */
  async escalate(approvalId, body, options) {
    return this.#transport.call("POST", path`/v1/approvals/${approvalId}/escalate`, { body }, options);
  }
}

/** What waits for the caller. */
export class Inbox {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List what waits for the caller: first what is assigned to the caller, then what is assigned to nobody, each by its end.
   * Access: a reviewer.
   * @param {types.InboxListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.InboxItem> & Pick<types.Inbox, "counts">>}
   */
  list(query, options) {
    return this.#transport.list("/v1/inbox", query, options);
  }

  /**
   * Count what waits for the caller, by kind.
   * Access: a reviewer.
   * @param {CallOptions} [options]
   * @returns {Promise<types.InboxSummary>}
   */
  async summary(options) {
    return this.#transport.call("GET", "/v1/inbox/summary", {}, options);
  }
}

export class WebhookEndpointsDeliveries {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List the deliveries to a webhook endpoint, newest first unless asked otherwise.
   * Access: admin on webhook-endpoint in path.
   * @param {string} webhookEndpointId
   * @param {types.WebhookEndpointsDeliveriesListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.WebhookDelivery>>}
   */
  list(webhookEndpointId, query, options) {
    return this.#transport.list(path`/v1/webhook-endpoints/${webhookEndpointId}/deliveries`, query, options);
  }

  /**
   * Read a delivery with its attempts and its event.
   * Access: admin on webhook-endpoint in path.
   * @param {string} webhookEndpointId
   * @param {string} webhookDeliveryId
   * @param {CallOptions} [options]
   * @returns {Promise<types.WebhookDeliveryWithAttempts>}
   */
  async get(webhookEndpointId, webhookDeliveryId, options) {
    return this.#transport.call("GET", path`/v1/webhook-endpoints/${webhookEndpointId}/deliveries/${webhookDeliveryId}`, {}, options);
  }

  /**
   * Send a delivery again: a new delivery of the same event, with the event's id.
   * Access: admin on webhook-endpoint in path.
   * @param {string} webhookEndpointId
   * @param {string} webhookDeliveryId
   * @param {CallOptions} [options]
   * @returns {Promise<types.WebhookDelivery>}
   */
  async resend(webhookEndpointId, webhookDeliveryId, options) {
    return this.#transport.call("POST", path`/v1/webhook-endpoints/${webhookEndpointId}/deliveries/${webhookDeliveryId}/resend`, {}, options);
  }
}

/** Receivers of events, and what became of each delivery. */
export class WebhookEndpoints {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
    this.deliveries = new WebhookEndpointsDeliveries(transport);
  }

  /**
   * Register a receiver of webhooks.
   * Access: admin on tenant.
   * @param {types.NewWebhookEndpoint} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.WebhookEndpoint>}
   */
  async create(body, options) {
    return this.#transport.call("POST", "/v1/webhook-endpoints", { body, takesKey: true }, options);
  }

  /**
   * List the webhook endpoints.
   * Access: admin on tenant.
   * @param {types.ListQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.WebhookEndpoint>>}
   */
  list(query, options) {
    return this.#transport.list("/v1/webhook-endpoints", query, options);
  }

  /**
   * Say whether webhooks may go to a URL, and which rule refuses which address; nothing is registered.
   * Access: admin on tenant.
   * @param {types.CheckUrl} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.CheckedUrl>}
   */
  async checkUrl(body, options) {
    return this.#transport.call("POST", "/v1/webhook-endpoints/check-url", { body }, options);
  }

  /**
   * Read a webhook endpoint.
   * Access: admin on webhook-endpoint in path.
   * @param {string} webhookEndpointId
   * @param {CallOptions} [options]
   * @returns {Promise<types.WebhookEndpoint>}
   */
  async get(webhookEndpointId, options) {
    return this.#transport.call("GET", path`/v1/webhook-endpoints/${webhookEndpointId}`, {}, options);
  }

  /**
   * Change a webhook endpoint: what is left out stays, a null filter is removed, another secret signs beside the earlier one for 24 hours.
   * Access: admin on webhook-endpoint in path.
   * @param {string} webhookEndpointId
   * @param {types.ChangeWebhookEndpoint} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.WebhookEndpoint>}
   */
  async update(webhookEndpointId, body, options) {
    return this.#transport.call("PATCH", path`/v1/webhook-endpoints/${webhookEndpointId}`, { body }, options);
  }

  /**
   * Unregister a webhook endpoint: what waits fails, and the answer comes once nothing is under way.
   * Access: admin on webhook-endpoint in path.
   * @param {string} webhookEndpointId
   * @param {CallOptions} [options]
   * @returns {Promise<void>}
   */
  async unregister(webhookEndpointId, options) {
    return this.#transport.call("DELETE", path`/v1/webhook-endpoints/${webhookEndpointId}`, {}, options);
  }

  /**
   * Send a test to a webhook endpoint, whichever events it takes.
   * Access: admin on webhook-endpoint in path.
   * @param {string} webhookEndpointId
   * @param {CallOptions} [options]
   * @returns {Promise<types.WebhookDelivery>}
   */
  async sendTest(webhookEndpointId, options) {
    return this.#transport.call("POST", path`/v1/webhook-endpoints/${webhookEndpointId}/test`, {}, options);
  }

  /**
   * Send again what failed for good since a time: the oldest 1000 deliveries that were not sent again yet.
   * Access: admin on webhook-endpoint in path.
   * @param {string} webhookEndpointId
   * @param {types.ResendFailed} body
   * @param {CallOptions} [options]
   * @returns {Promise<types.Resent>}
   */
  async resendFailed(webhookEndpointId, body, options) {
    return this.#transport.call("POST", path`/v1/webhook-endpoints/${webhookEndpointId}/resend`, { body }, options);
  }
}

/** The recorded access decisions. */
export class Audit {
  #transport;

  /** @param {Transport} transport */
  constructor(transport) {
    this.#transport = transport;
  }

  /**
   * List the tenant's access decisions, oldest first unless asked otherwise.
   * Access: admin on tenant.
   * @param {types.AuditAuthzQuery} [query]
   * @param {CallOptions} [options]
   * @returns {Pages<Page<types.AccessDecision>>}
   */
  authz(query, options) {
    return this.#transport.list("/v1/audit/authz", query, options);
  }

  /**
   * Read one of the tenant's access decisions.
   * Access: admin on tenant.
   * @param {string} decisionId
   * @param {CallOptions} [options]
   * @returns {Promise<types.AccessDecision>}
   */
  async decision(decisionId, options) {
    return this.#transport.call("GET", path`/v1/audit/authz/${decisionId}`, {}, options);
  }
}

/** Every noun of the service. */
export class Nouns {
  /** @param {Transport} transport */
  constructor(transport) {
    /** The people of the tenant, their enrolment codes and sessions, and what the caller may do. */
    this.users = new Users(transport);
    /** The people of the tenant, their enrolment codes and sessions, and what the caller may do. */
    this.enrolments = new Enrolments(transport);
    /** How a person signs in with a browser, on the server's own pages: the answer's cookie carries a session. */
    this.signIn = new SignIn(transport);
    /** How a person ends the session of a browser. */
    this.me = new Me(transport);
    /** OpenID Connect issuers by which people sign in, the email domains that each speaks for, and the teams of its groups. */
    this.identityProviders = new IdentityProviders(transport);
    /** Who may sign in with a token, and how long sessions last. */
    this.signInSettings = new SignInSettings(transport);
    /** Accounts of programs, and their bearer tokens. */
    this.serviceAccounts = new ServiceAccounts(transport);
    /** The caller's own bearer tokens, and public run tokens for browsers. */
    this.tokens = new Tokens(transport);
    /** Groups of projects with admins of their own. */
    this.orgs = new Orgs(transport);
    /** Who may decide about approvals. */
    this.reviewers = new Reviewers(transport);
    /** Projects hold agents, tools, conversations and runs. Who may do what in them, directly and through teams. */
    this.projects = new Projects(transport);
    /** People and service accounts that get roles on projects together. */
    this.teams = new Teams(transport);
    /** Values that model providers and webhooks use by name. They are never shown. */
    this.secrets = new Secrets(transport);
    /** Where a secret may be sent, by name: to which HTTP servers, for which project. */
    this.secretUses = new SecretUses(transport);
    /** Environments and their variables, which flows read. They are no secrets. */
    this.environments = new Environments(transport);
    /** The guardrails of a tenant and of its projects, in versions that never change. No agent takes them away. */
    this.policies = new Policies(transport);
    /** Checks of what goes into a run and of what comes out, tried on a text. */
    this.guardrails = new Guardrails(transport);
    /** Servers of models that agents use, with their models and prices. */
    this.modelProviders = new ModelProviders(transport);
    /** HTTP tools of a project, which its agents may call. */
    this.tools = new Tools(transport);
    /** Agents of a project: what each is told, in versions that never change, and which version is live. */
    this.agents = new Agents(transport);
    /** Flows of a project: what each does, step by step, in versions that never change, and which version is live. */
    this.flows = new Flows(transport);
    /** Conversations with an agent: runs that know what was said before. */
    this.conversations = new Conversations(transport);
    /** A run is one turn of an agent. Start it, follow it while it goes on, read what came of it, cancel it. */
    this.runs = new Runs(transport);
    /** What model calls used and cost, summed over days, projects, agents and models. */
    this.usage = new Usage(transport);
    /** Hints that something changed, so that a page reads it again. */
    this.changes = new Changes(transport);
    /** What runs ask reviewers, and what these decide. */
    this.approvals = new Approvals(transport);
    /** What waits for the caller. */
    this.inbox = new Inbox(transport);
    /** Receivers of events, and what became of each delivery. */
    this.webhookEndpoints = new WebhookEndpoints(transport);
    /** The recorded access decisions. */
    this.audit = new Audit(transport);
  }
}
