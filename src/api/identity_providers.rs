//! `/v1/identity-providers`: the OpenID Connect issuers by which the tenant's people sign in.
//!
//! Guarantees: if the operator keeps the providers in a file, every change is refused and recorded (section 5.6.3). The
//! tenant chooses a provider's URL, so it can reach only what tenants may reach. An issuer never changes, because subjects
//! belong to their issuer. Deleting a provider ends its sessions in the same transaction. Whoever decides who arrives by a
//! provider decides who gets a session with every capability: so it takes `keys:write` besides `access:write`.
//!
//! Not here: signing in by one (`sign_in`), and who somebody is (`arrivals`).

use super::page_query::PageQuery;
use super::request_parts::{check_secret, check_url, given, invalid_body};
use crate::authz::desired_tuples::{Object, mark};
use crate::authz::{Checker, Stage};
use crate::config::identity_providers::{
    DOMAIN, DOMAINS_MOST, GROUP_NAME_MOST, GROUPS_MOST, ISSUER, SCOPE, SCOPES_MOST, is_domain,
    is_issuer, is_scope,
};
use crate::error::{Code, Result};
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::faults::both;
use crate::http::input::{Body, Name, Nothing, Query, Text};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Authorized, Caller, Capability};
use crate::secrets::SecretRef;
use crate::store::identity_providers::{
    self, About, EmailTrust, Ended, Group, IdentityProvider, ManagedBy, MissingGroups,
};
use crate::store::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use uuid::Uuid;

/// Where a body names the secret.
const SECRET: &str = "$.clientSecretRef";

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Patch, Post};
    let (all, one) = (
        "/v1/identity-providers",
        "/v1/identity-providers/{identityProviderId}",
    );
    let refused = [
        Code::AlreadyExists,
        Code::Conflict,
        Code::IdentityProvidersOperatorManaged,
        Code::SecretsUnavailable,
    ];
    vec![
        route(
            Post,
            all,
            "identityProviders.create",
            "Register an identity provider by which people sign in",
            create,
        )
        .needs(Capability::AccessWrite)
        .answers(&refused)
        .answers(&[Code::HostAccessDenied]),
        route(
            Get,
            all,
            "identityProviders.list",
            "List the tenant's identity providers",
            list,
        ),
        route(
            Get,
            one,
            "identityProviders.get",
            "Read an identity provider",
            read,
        ),
        route(
            Patch,
            one,
            "identityProviders.update",
            "Change an identity provider: what is left out stays, a list replaces the one that stands",
            change,
        )
        .needs(Capability::AccessWrite)
        .answers(&refused)
        .answers(&[Code::AuthorizationUnavailable]),
        route(
            Delete,
            one,
            "identityProviders.delete",
            "Delete an identity provider: its identities, the sessions it opened, and the memberships of its groups end",
            delete,
        )
        .needs(Capability::AccessWrite)
        .answers(&[
            Code::IdentityProvidersOperatorManaged,
            Code::AuthorizationUnavailable,
        ]),
    ]
}

/// An identity provider.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "IdentityProvider")]
struct View {
    id: Uuid,
    /// Who keeps it.
    managed_by: ManagedBy,
    /// Whether people sign in by it. While the operator keeps providers in a file, those that the tenant registered do
    /// not serve.
    serves: bool,
    name: String,
    issuer: String,
    client_id: String,
    /// None: a public client, or the operator has it in a file.
    client_secret_ref: Option<SecretRef>,
    scopes: Vec<String>,
    email_domains: Vec<String>,
    email_trust: EmailTrust,
    creates_people: bool,
    groups_claim: Option<String>,
    groups: Vec<Group>,
    /// When somebody last signed in without the claim of groups, who has not signed in with it since: their teams stayed as
    /// they were. Let the provider put the claim into the ID token or userinfo, also where the person is in no group; some
    /// providers take a scope for it. Null: there is nobody, or the provider was changed here since.
    groups_absent_at: Option<Timestamp>,
    /// The same where the provider left the groups out, because the person is in more than it names (500 count at most). Let
    /// it name only those that are registered here.
    groups_left_out_at: Option<Timestamp>,
    /// What to register at the provider as the address to come back to. Null: the server has no address
    /// (`SVC_PUBLIC_URL`).
    callback_url: Option<String>,
    created_by: Option<Uuid>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

fn view(cx: &Cx<'_>, provider: IdentityProvider, missing: MissingGroups) -> View {
    let options = cx.authn().sign_in();
    let id = provider.identity_provider_id;
    let own = options.public_url.as_ref();
    View {
        id,
        managed_by: provider.managed_by,
        serves: provider.managed_by == options.providers_managed_by(),
        name: provider.name,
        issuer: provider.issuer,
        client_id: provider.client_id,
        client_secret_ref: provider.client_secret,
        scopes: provider.scopes,
        email_domains: provider.domains,
        email_trust: provider.email_trust,
        creates_people: provider.creates_people,
        groups_claim: provider.groups_claim,
        groups: provider.groups,
        groups_absent_at: missing.absent_at.map(Timestamp::from),
        groups_left_out_at: missing.left_out_at.map(Timestamp::from),
        callback_url: own.map(|own| callback_url(own.text(), id)),
        created_by: provider.created_by,
        created_at: provider.created_at.into(),
        updated_at: provider.updated_at.into(),
    }
}

/// Where a browser comes back to from a provider.
pub fn callback_url(own: &str, identity_provider_id: Uuid) -> String {
    format!("{own}/sign-in/callback/{identity_provider_id}")
}

/// An identity provider to register.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "name": "Plant accounts",
    "issuer": "https://id.plant.example/realms/plant",
    "clientId": "agent-runtime",
    "clientSecretRef": {"envName": "production", "name": "OIDC_PLANT"},
    "emailDomains": ["plant.example"],
}))]
struct NewIdentityProvider {
    /// What the sign-in page calls it; unique in the tenant.
    name: Name,
    /// The issuer, byte for byte as its own document names it: https, without a query. It cannot be changed.
    #[schemars(length(max = 2048), extend("format" = "uri"))]
    issuer: String,
    /// What the provider calls this server.
    client_id: Text<1, 500>,
    /// The secret that goes with it; none for a public client.
    client_secret_ref: Option<SecretRef>,
    /// Scopes beside `openid`, `email` and `profile`.
    #[serde(default)]
    #[schemars(length(max = 20))]
    scopes: Vec<String>,
    /// The email domains that it speaks for, which no other provider of the tenant does. In ASCII form (`xn--…`). An email
    /// of another domain signs nobody in for the first time.
    #[serde(default)]
    #[schemars(length(max = 100))]
    email_domains: Vec<String>,
    /// `provider` takes its word for every email, also where it does not say that it verified it: only where nobody chooses
    /// an email of their own there.
    #[serde(default = "claim")]
    email_trust: EmailTrust,
    /// Whether somebody whom nobody added becomes a member by signing in.
    #[serde(default)]
    creates_people: bool,
    /// The claim that has a person's groups. None: groups are not asked for.
    groups_claim: Option<Text<1, 200>>,
    /// What its groups are here. It needs a `groupsClaim`.
    #[serde(default)]
    #[schemars(length(max = 200))]
    groups: Vec<Group>,
}

fn claim() -> EmailTrust {
    EmailTrust::Claim
}

/// What to change of an identity provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"emailDomains": ["plant.example", "lab.plant.example"]}))]
struct ChangeIdentityProvider {
    name: Option<Name>,
    client_id: Option<Text<1, 500>>,
    /// Null: a public client.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<SecretRef>")]
    client_secret_ref: Option<Option<SecretRef>>,
    #[schemars(length(max = 20))]
    scopes: Option<Vec<String>>,
    #[schemars(length(max = 100))]
    email_domains: Option<Vec<String>>,
    email_trust: Option<EmailTrust>,
    creates_people: Option<bool>,
    /// Null: groups are not asked for, and the memberships that they gave end.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<Text<1, 200>>")]
    groups_claim: Option<Option<Text<1, 200>>>,
    /// A team that none of them stands for any more loses the members that they gave.
    #[schemars(length(max = 200))]
    groups: Option<Vec<Group>>,
}

impl ChangeIdentityProvider {
    /// Whether more changes than the name: the rest decides who arrives, as whom, and what they get.
    fn concerns_arrivals(&self) -> bool {
        // All fields by name, so that nobody forgets a new one.
        let Self {
            name: _,
            client_id,
            client_secret_ref,
            scopes,
            email_domains,
            email_trust,
            creates_people,
            groups_claim,
            groups,
        } = self;
        client_id.is_some()
            || client_secret_ref.is_some()
            || scopes.is_some()
            || email_domains.is_some()
            || email_trust.is_some()
            || creates_people.is_some()
            || groups_claim.is_some()
            || groups.is_some()
    }
}

/// Refuses what only the operator changes, where there is a file (section 5.6.3).
///
/// # Errors
/// `identity-providers-operator-managed`.
pub(super) fn refuse_operator_managed(cx: &Cx<'_>, checker: &Checker<'_>) -> Result<()> {
    if cx.authn().sign_in().providers_managed_by() == ManagedBy::Tenant {
        return Ok(());
    }
    let resource = format!("tenant:{}", checker.caller().tenant_id);
    Err(checker.refuse(
        Stage::IdentityProvidersOperatorManaged,
        "admin",
        &resource,
        "The operator keeps the identity providers and how people sign in. Ask the operator for the change.",
        Code::IdentityProvidersOperatorManaged,
    ))
}

fn create(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Body(new): Body<NewIdentityProvider>,
) -> Result<Created<View>> {
    let OnTenant(may) = tenant;
    let checker = cx.checker_of(may.caller().clone());
    refuse_operator_managed(cx, &checker)?;
    checker.needs(Capability::KeysWrite)?;
    let domains = in_lowercase(&new.email_domains);
    let about = About {
        name: new.name.as_str(),
        issuer: &new.issuer,
        client_id: new.client_id.as_str(),
        client_secret: new.client_secret_ref.as_ref(),
        scopes: &new.scopes,
        email_trust: new.email_trust,
        creates_people: new.creates_people,
        groups_claim: new.groups_claim.as_ref().map(Text::as_str),
        domains: &domains,
        groups: &new.groups,
    };
    let secret = about.client_secret.map_or(Ok(()), |at| {
        checker.needs(Capability::SecretsWrite)?;
        check_secret(cx, may.caller().tenant_id, SECRET, at)
    });
    let issuer = check_issuer(cx, may.caller(), about.issuer);
    both(both(secret, issuer), check(&about))?;
    let (id, now) = (cx.new_id(), cx.now());
    let provider =
        cx.transact(|tx| identity_providers::insert(tx, &may, may.caller(), id, &about, now))?;
    Ok(Created(view(cx, provider, MissingGroups::default())))
}

/// The URL may be reached, and is one of an issuer (OpenID Connect Discovery, section 3).
fn check_issuer(cx: &Cx<'_>, caller: &Caller, issuer: &str) -> Result<()> {
    let tenant = format!("tenant:{}", caller.tenant_id);
    check_url(cx, caller, &tenant, "$.issuer", issuer)?;
    match is_issuer(issuer) {
        true => Ok(()),
        false => Err(invalid_body("$.issuer", ISSUER)),
    }
}

/// As domains are compared: in lowercase.
fn in_lowercase(domains: &[String]) -> Vec<String> {
    domains
        .iter()
        .map(|domain| domain.to_ascii_lowercase())
        .collect()
}

/// What is wrong in the lists of a provider, each once: at which place below it, and what is expected there.
fn faults(about: &About<'_>) -> Vec<(String, &'static str)> {
    let mut faults = Vec::new();
    let mut wrong = |path: String, expected| faults.push((path, expected));
    if about.scopes.len() > SCOPES_MOST {
        wrong("scopes".to_owned(), "20 scopes at most");
    }
    if about.domains.len() > DOMAINS_MOST {
        wrong("emailDomains".to_owned(), "100 domains at most");
    }
    if about.groups.len() > GROUPS_MOST {
        wrong("groups".to_owned(), "200 groups at most");
    }
    if about.groups_claim.is_none() && !about.groups.is_empty() {
        wrong("groups".to_owned(), "none without a groupsClaim");
    }
    let mut seen = HashSet::new();
    for (index, scope) in about.scopes.iter().enumerate().take(SCOPES_MOST) {
        if !is_scope(scope) || !seen.insert(scope.as_str()) {
            wrong(format!("scopes[{index}]"), SCOPE);
        }
    }
    let mut seen = HashSet::new();
    for (index, domain) in about.domains.iter().enumerate().take(DOMAINS_MOST) {
        if !is_domain(domain) || !seen.insert(domain.as_str()) {
            wrong(format!("emailDomains[{index}]"), DOMAIN);
        }
    }
    let mut seen = HashSet::new();
    for (index, row) in about.groups.iter().enumerate().take(GROUPS_MOST) {
        let length = row.group.chars().count();
        if !(1..=GROUP_NAME_MOST).contains(&length) {
            wrong(format!("groups[{index}].group"), "1 to 256 characters");
        }
        if !seen.insert((row.group.as_str(), row.team_id.0)) {
            wrong(
                format!("groups[{index}]"),
                "a group and a team that stand together once",
            );
        }
    }
    faults
}

fn check(about: &About<'_>) -> Result<()> {
    match faults(about).into_iter().next() {
        Some((path, expected)) => Err(invalid_body(&format!("$.{path}"), expected)),
        None => Ok(()),
    }
}

fn list(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let page = query.page(&"identity-providers")?;
    let mut session = cx.store().session()?;
    let rows = identity_providers::list(&mut session, &tenant.0, &page)?;
    let ids: Vec<Uuid> = rows.iter().map(|row| row.identity_provider_id).collect();
    let missing = identity_providers::missing_groups(&mut session, &tenant.0, &ids)?;
    let shown = |row: IdentityProvider| {
        let missing = missing.get(&row.identity_provider_id);
        view(cx, row, missing.copied().unwrap_or_default())
    };
    Ok(Found(page.page(
        rows,
        |row| row.identity_provider_id,
        shown,
    )))
}

fn read(
    cx: &Cx<'_>,
    provider: Authorized<IdentityProvider, Admin>,
    _: Nothing,
) -> Result<Found<View>> {
    let (mut session, id) = (cx.store().session()?, provider.row().identity_provider_id);
    let missing = identity_providers::missing_groups(&mut session, &provider, &[id])?;
    let missing = missing.get(&id).copied().unwrap_or_default();
    Ok(Found(view(cx, provider.into_row(), missing)))
}

fn change(
    cx: &Cx<'_>,
    provider: Authorized<IdentityProvider, Admin>,
    Body(change): Body<ChangeIdentityProvider>,
) -> Result<Found<View>> {
    let caller = provider.caller();
    let checker = cx.checker_of(caller.clone());
    refuse_operator_managed(cx, &checker)?;
    if change.concerns_arrivals() {
        checker.needs(Capability::KeysWrite)?;
    }
    if let Some(Some(at)) = &change.client_secret_ref {
        checker.needs(Capability::SecretsWrite)?;
        check_secret(cx, caller.tenant_id, SECRET, at)?;
    }
    let domains = change.email_domains.as_deref().map(in_lowercase);
    let now = cx.now();
    let (changed, objects) = cx.transact(|tx| {
        // What stays and what is new must fit each other, so nobody may change the rest meanwhile.
        let before = identity_providers::lock(tx, &provider)?;
        let about = About {
            name: change.name.as_ref().map_or(&before.name, Text::as_str),
            issuer: &before.issuer,
            client_id: change
                .client_id
                .as_ref()
                .map_or(&before.client_id, Text::as_str),
            client_secret: match &change.client_secret_ref {
                Some(given) => given.as_ref(),
                None => before.client_secret.as_ref(),
            },
            scopes: change.scopes.as_deref().unwrap_or(&before.scopes),
            email_trust: change.email_trust.unwrap_or(before.email_trust),
            creates_people: change.creates_people.unwrap_or(before.creates_people),
            groups_claim: match &change.groups_claim {
                Some(given) => given.as_ref().map(Text::as_str),
                None => before.groups_claim.as_deref(),
            },
            domains: domains.as_deref().unwrap_or(&before.domains),
            groups: change.groups.as_deref().unwrap_or(&before.groups),
        };
        check(&about)?;
        let (changed, teams) = identity_providers::update(tx, &provider, &about, now)?;
        let objects: Vec<Object> = teams.into_iter().map(Object::Team).collect();
        mark(tx, caller.tenant_id, &objects)?;
        Ok((changed, objects))
    })?;
    cx.apply_permissions(caller.tenant_id, &objects)?;
    // A change forgets what was missing.
    Ok(Found(view(cx, changed, MissingGroups::default())))
}

fn delete(cx: &Cx<'_>, provider: Authorized<IdentityProvider, Admin>, _: Nothing) -> Result<Gone> {
    let caller = provider.caller();
    refuse_operator_managed(cx, &cx.checker_of(caller.clone()))?;
    let now = cx.now();
    let (ended, objects) = cx.transact(|tx| {
        let ended = identity_providers::delete(tx, &provider, now)?;
        let objects = ended_objects(&ended);
        mark(tx, caller.tenant_id, &objects)?;
        Ok((ended, objects))
    })?;
    forget(cx, caller.tenant_id, &ended);
    cx.apply_permissions(caller.tenant_id, &objects)?;
    Ok(Gone)
}

/// The objects that what ended concerns.
pub(super) fn ended_objects(ended: &Ended) -> Vec<Object> {
    ended.teams.iter().copied().map(Object::Team).collect()
}

/// The sessions that ended here count no more, at once.
pub(super) fn forget(cx: &Cx<'_>, tenant_id: Uuid, ended: &Ended) {
    for user_id in &ended.people {
        cx.authn().forget_user(tenant_id, *user_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;
    use crate::store::team_memberships::Role;

    #[test]
    fn every_fault_of_a_provider_is_named() {
        let texts = |texts: &[&str]| -> Vec<String> {
            texts.iter().map(|text| (*text).to_owned()).collect()
        };
        let row = Group {
            group: "ops".to_owned(),
            team_id: Id(Uuid::nil()),
            role: Role::Member,
        };
        let mut groups = vec![row.clone(), row.clone()];
        groups[0].group = String::new();
        groups.push(row);
        let (scopes, domains) = (
            texts(&["groups", "groups", "a b", "", "\"", "offline_access"]),
            texts(&[
                "plant.example",
                "plant.example",
                "plant.example.",
                "müller.example",
                "-a.example",
                "a..example",
                "",
                "xn--mller-kva.example",
            ]),
        );
        let about = About {
            name: "Plant",
            issuer: "https://id.plant.example",
            client_id: "agent-runtime",
            client_secret: None,
            scopes: &scopes,
            email_trust: EmailTrust::Claim,
            creates_people: false,
            groups_claim: None,
            domains: &domains,
            groups: &groups,
        };
        let paths: Vec<String> = faults(&about).into_iter().map(|(path, _)| path).collect();
        let expected = [
            "groups",
            "scopes[1]",
            "scopes[2]",
            "scopes[3]",
            "scopes[4]",
            "emailDomains[1]",
            "emailDomains[2]",
            "emailDomains[3]",
            "emailDomains[4]",
            "emailDomains[5]",
            "emailDomains[6]",
            "groups[0].group",
            "groups[2]",
        ];
        assert_eq!(paths, expected);
        let many = vec!["a".to_owned(); DOMAINS_MOST + 1];
        let about = About {
            domains: &many,
            groups_claim: Some("groups"),
            groups: &vec![groups[1].clone(); GROUPS_MOST + 1],
            ..about
        };
        let paths: Vec<String> = faults(&about).into_iter().map(|(path, _)| path).collect();
        assert!(paths.contains(&"emailDomains".to_owned()) && paths.contains(&"groups".to_owned()));
    }
}
