//! Identity providers: the OpenID Connect issuers that a tenant trusts, the email domains of each, and the teams to which
//! its groups map.
//!
//! The name of a client's secret is stored, never the secret. Guarantees: in a tenant a domain belongs to one provider, so
//! no other provider can sign in its people. Deleting a provider also deletes its identities, its sessions and the team
//! memberships from its groups, in one transaction. A change or a deletion waits for sign-ins under way.
//!
//! Locks are taken in one order: tenant, provider, team, user.
//!
//! Not here: those of the operator's file (`operator_providers`), who a subject is (`api::arrivals`), and the protocol
//! (`oidc`).

use super::page::Request;
use super::secrets::SecretRef;
use super::team_memberships::{self, Role};
use super::tenants::{self, Tenant};
use super::{Columns, Find, Finding, FromRow, Sql, Tx};
pub use crate::config::EmailTrust;
use crate::config::identity_providers::PROVIDERS_MOST;
use crate::error::{Code, Error, Result};
use crate::ids::Id;
use crate::proof::{Admin, Caller, Kind, May, Scope};
use crate::{find_sql, list_sql, sql, texts};
use postgres::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    /// Who keeps an identity provider.
    #[schemars(rename = "IdentityProviderManager")]
    ManagedBy {
        /// The tenant's admins.
        Tenant = "tenant",
        /// The operator, in a file.
        Operator = "operator",
    }
}

/// A group of the provider, and what its members are here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "IdentityProviderGroup")]
pub struct Group {
    /// As the provider's claim names it.
    #[schemars(length(min = 1, max = 256))]
    pub group: String,
    /// The team.
    pub team_id: Id,
    /// The role in the team.
    pub role: Role,
}

/// An identity provider.
#[derive(Debug, Clone)]
pub struct IdentityProvider {
    /// Its id.
    pub identity_provider_id: Uuid,
    /// Who keeps it.
    pub managed_by: ManagedBy,
    /// What it is called on the page; unique in the tenant.
    pub name: String,
    /// The issuer, byte for byte as the provider's tokens name it.
    pub issuer: String,
    /// Our id at the provider.
    pub client_id: String,
    /// The secret that proves it; none: a public client, or the operator's file has it.
    pub client_secret: Option<SecretRef>,
    /// What is asked for beside `openid email profile`.
    pub scopes: Vec<String>,
    /// When its emails count.
    pub email_trust: EmailTrust,
    /// Whether it adds people whom nobody added.
    pub creates_people: bool,
    /// The claim that has the groups.
    pub groups_claim: Option<String>,
    /// The domains that it speaks for, in ASCII and lowercase.
    pub domains: Vec<String>,
    /// What its groups are here.
    pub groups: Vec<Group>,
    /// Who registered it; the operator is nobody.
    pub created_by: Option<Uuid>,
    /// When it was registered.
    pub created_at: OffsetDateTime,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
}

impl Kind for IdentityProvider {
    const NAME: &'static str = "identity-provider";
    fn id(&self) -> Uuid {
        self.identity_provider_id
    }
    fn scope(&self) -> Scope {
        Scope::OnTenant
    }
}

impl Find for IdentityProvider {
    const FINDING: Finding = find_sql!("identity_providers/find");
    fn read(row: &Row) -> Result<Option<Self>> {
        Self::from_row(row).map(Some)
    }
}

impl FromRow for IdentityProvider {
    fn from_row(row: &Row) -> Result<Self> {
        let environment = row.column("secret_environment")?;
        let groups: serde_json::Value = row.column("groups")?;
        Ok(Self {
            identity_provider_id: row.column("identity_provider_id")?,
            managed_by: row.column("managed_by")?,
            name: row.column("name")?,
            issuer: row.column("issuer")?,
            client_id: row.column("client_id")?,
            client_secret: SecretRef::maybe(environment, row.column("secret_name")?),
            scopes: row.column("scopes")?,
            email_trust: row.column("email_trust")?,
            creates_people: row.column("creates_people")?,
            groups_claim: row.column("groups_claim")?,
            domains: row.column("domains")?,
            groups: serde_json::from_value(groups).map_err(Error::internal)?,
            created_by: row.column("created_by")?,
            created_at: row.column("created_at")?,
            updated_at: row.column("updated_at")?,
        })
    }
}

/// What is said of a provider when it is registered or changed.
#[derive(Debug)]
pub struct About<'a> {
    /// See [`IdentityProvider`].
    pub name: &'a str,
    /// See [`IdentityProvider`]. It never changes: a subject is one of its issuer.
    pub issuer: &'a str,
    /// See [`IdentityProvider`].
    pub client_id: &'a str,
    /// See [`IdentityProvider`].
    pub client_secret: Option<&'a SecretRef>,
    /// See [`IdentityProvider`].
    pub scopes: &'a [String],
    /// See [`IdentityProvider`].
    pub email_trust: EmailTrust,
    /// See [`IdentityProvider`].
    pub creates_people: bool,
    /// See [`IdentityProvider`].
    pub groups_claim: Option<&'a str>,
    /// See [`IdentityProvider`].
    pub domains: &'a [String],
    /// See [`IdentityProvider`].
    pub groups: &'a [Group],
}

/// When somebody last signed in by a provider whose groups it did not name, and who has not signed in with them since. None:
/// there is nobody, or the provider was changed since.
#[derive(Debug, Clone, Copy, Default)]
pub struct MissingGroups {
    /// The claim was absent.
    pub absent_at: Option<OffsetDateTime>,
    /// The claim was left out: the person is in more groups than the provider names.
    pub left_out_at: Option<OffsetDateTime>,
}

crate::from_row!(MissingGroups {
    absent_at,
    left_out_at
});

/// Whose groups each of these providers does not name.
pub fn missing_groups<K: Kind>(
    sql: &mut impl Sql,
    may: &impl May<Admin, K>,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, MissingGroups>> {
    let rows = sql.query(
        sql!("identity_providers/missing_groups"),
        &[&may.tenant_id(), &ids],
    )?;
    let of_row = |row: &Row| Ok((row.column("identity_provider_id")?, FromRow::from_row(row)?));
    rows.iter().map(of_row).collect()
}

/// A provider that serves, as everybody may see it.
#[derive(Debug, Clone)]
pub struct Serving {
    /// Its id.
    pub identity_provider_id: Uuid,
    /// What it is called.
    pub name: String,
}

crate::from_row!(Serving {
    identity_provider_id,
    name
});

/// The tenant's providers that serve, by name, where this one keeps them.
pub fn serving(sql: &mut impl Sql, tenant_id: Uuid, managed_by: ManagedBy) -> Result<Vec<Serving>> {
    sql.fetch_all(
        sql!("identity_providers/serving"),
        &[&tenant_id, &managed_by],
    )
}

/// The tenant and the provider that serves by this id, where this one keeps them. It runs before the tenant is known.
///
/// # Errors
/// `not-found`: there is none. `database-unavailable`.
pub fn named(
    sql: &mut impl Sql,
    identity_provider_id: Uuid,
    managed_by: ManagedBy,
) -> Result<(Uuid, IdentityProvider)> {
    let not_found = || Error::not_found(IdentityProvider::NAME, identity_provider_id);
    let row = sql
        .query_opt(
            sql!("identity_providers/tenant_of"),
            &[&identity_provider_id, &managed_by],
        )?
        .ok_or_else(not_found)?;
    let tenant_id: Uuid = row.only()?;
    let provider = IdentityProvider::find(sql, tenant_id, identity_provider_id)?;
    Ok((tenant_id, provider.ok_or_else(not_found)?))
}

/// The provider as it is, kept from changes until the transaction ends: for somebody who arrives by it.
///
/// # Errors
/// `not-found`: it was deleted. `database-unavailable`.
pub fn keep(tx: &mut Tx<'_>, tenant_id: Uuid, id: Uuid) -> Result<IdentityProvider> {
    tx.execute(sql!("identity_providers/keep"), &[&tenant_id, &id])?;
    found(tx, tenant_id, id)
}

fn found(tx: &mut Tx<'_>, tenant_id: Uuid, id: Uuid) -> Result<IdentityProvider> {
    IdentityProvider::find(tx, tenant_id, id)?
        .ok_or_else(|| Error::not_found(IdentityProvider::NAME, id))
}

/// Registers a provider.
///
/// # Errors
/// `already-exists`: the name, the client at this issuer, or a domain is another provider's. `conflict`: the tenant has
/// [`PROVIDERS_MOST`]. `invalid-body`: a team is not there. `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    creator: &Caller,
    id: Uuid,
    about: &About<'_>,
    now: OffsetDateTime,
) -> Result<IdentityProvider> {
    let tenant_id = may.tenant_id();
    tenants::lock(tx, tenant_id)?;
    refuse_taken(tx, tenant_id, id, about)?;
    tx.execute(
        sql!("identity_providers/insert"),
        &[
            &tenant_id,
            &id,
            &about.name,
            &about.issuer,
            &about.client_id,
            &about.client_secret.map(|at| &at.environment),
            &about.client_secret.map(|at| &at.name),
            &about.scopes,
            &about.email_trust,
            &about.creates_people,
            &about.groups_claim,
            &creator.user_id,
            &now,
        ],
    )?;
    put_domains_and_groups(tx, tenant_id, id, about.domains, about.groups)?;
    found(tx, tenant_id, id)
}

/// The tenant's row is locked: nobody else takes a name or a domain meanwhile.
fn refuse_taken(tx: &mut Tx<'_>, tenant_id: Uuid, id: Uuid, about: &About<'_>) -> Result<()> {
    let row = tx.query_one(
        sql!("identity_providers/taken"),
        &[
            &tenant_id,
            &id,
            &about.name,
            &about.issuer,
            &about.client_id,
            &about.domains,
        ],
    )?;
    let taken = |path: &str, what: String| {
        let message = format!("{what} Change that one, or choose another.");
        Err(Error::new(Code::AlreadyExists, message).detail("path", path))
    };
    if row.column("has_name")? {
        let name = about.name;
        return taken(
            "$.name",
            format!("There is an identity provider named {name} already."),
        );
    }
    if row.column("has_client")? {
        let what = "There is an identity provider with this issuer and client id already.";
        return taken("$.clientId", what.to_owned());
    }
    if let Some(domain) = row.column::<Option<String>>("domain")? {
        let what = format!("Another identity provider speaks for the domain {domain} already.");
        return taken("$.emailDomains", what);
    }
    let others: i64 = row.column("others")?;
    if usize::try_from(others).is_ok_and(|others| others >= PROVIDERS_MOST) {
        let message =
            format!("A tenant has {PROVIDERS_MOST} identity providers at most. Delete one first.");
        return Err(Error::new(Code::Conflict, message));
    }
    Ok(())
}

pub(super) fn put_domains_and_groups(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    id: Uuid,
    domains: &[String],
    groups: &[Group],
) -> Result<()> {
    let mut teams: Vec<Uuid> = groups.iter().map(|group| group.team_id.0).collect();
    teams.sort_unstable();
    teams.dedup();
    let missing = tx.query_opt(
        sql!("identity_providers/missing_team"),
        &[&tenant_id, &teams],
    )?;
    if let Some(row) = missing {
        let team_id: Uuid = row.only()?;
        let message = format!("The body's $.groups: there is no team {team_id}.");
        return Err(Error::new(Code::InvalidBody, message).detail("path", "$.groups"));
    }
    tx.execute(sql!("identity_providers/drop_domains"), &[&tenant_id, &id])?;
    tx.execute(
        sql!("identity_providers/put_domains"),
        &[&tenant_id, &id, &domains],
    )?;
    tx.execute(sql!("identity_providers/drop_groups"), &[&tenant_id, &id])?;
    let groups = serde_json::to_value(groups).map_err(Error::internal)?;
    tx.execute(
        sql!("identity_providers/put_groups"),
        &[&tenant_id, &id, &groups],
    )?;
    Ok(())
}

/// The provider as it is now, kept from other changes and from those who arrive by it until the transaction ends.
///
/// # Errors
/// `not-found`: it was deleted since. `database-unavailable`.
pub fn lock(tx: &mut Tx<'_>, may: &impl May<Admin, IdentityProvider>) -> Result<IdentityProvider> {
    let (tenant_id, id) = (may.tenant_id(), may.object_id());
    tenants::lock(tx, tenant_id)?;
    tx.execute(sql!("identity_providers/lock"), &[&tenant_id, &id])?;
    found(tx, tenant_id, id)
}

/// Changes the provider that [`lock`] gave, and gives the teams whose members are fewer: those that no group stands for
/// any more.
///
/// # Errors
/// As [`insert`].
pub fn update(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, IdentityProvider>,
    about: &About<'_>,
    now: OffsetDateTime,
) -> Result<(IdentityProvider, Vec<Uuid>)> {
    let (tenant_id, id) = (may.tenant_id(), may.object_id());
    refuse_taken(tx, tenant_id, id, about)?;
    tx.execute(
        sql!("identity_providers/update"),
        &[
            &tenant_id,
            &id,
            &about.name,
            &about.client_id,
            &about.client_secret.map(|at| &at.environment),
            &about.client_secret.map(|at| &at.name),
            &about.scopes,
            &about.email_trust,
            &about.creates_people,
            &about.groups_claim,
            &now,
        ],
    )?;
    put_domains_and_groups(tx, tenant_id, id, about.domains, about.groups)?;
    let kept: Vec<Uuid> = about.groups.iter().map(|group| group.team_id.0).collect();
    let changed = team_memberships::end_of_source(tx, tenant_id, id, None, &kept)?;
    Ok((found(tx, tenant_id, id)?, changed))
}

/// What a provider left when it ended.
#[derive(Debug)]
pub struct Ended {
    /// The teams whose members are fewer.
    pub teams: Vec<Uuid>,
    /// The people whose sessions ended.
    pub people: Vec<Uuid>,
}

/// Deletes a provider with its identities, its sessions, and the memberships that its groups gave.
///
/// # Errors
/// `not-found`: it was deleted since. `database-unavailable`.
pub fn delete(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, IdentityProvider>,
    now: OffsetDateTime,
) -> Result<Ended> {
    let (tenant_id, id) = (may.tenant_id(), may.object_id());
    lock(tx, may)?;
    let ended = end(tx, tenant_id, id, now)?;
    tx.execute(sql!("identity_providers/delete"), &[&tenant_id, &id])?;
    Ok(ended)
}

/// Ends what a provider gave: sessions and memberships. Its row is locked.
pub(super) fn end(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    id: Uuid,
    now: OffsetDateTime,
) -> Result<Ended> {
    let teams = team_memberships::end_of_source(tx, tenant_id, id, None, &[])?;
    let people = super::sessions::end_of_provider(tx, tenant_id, id, None, now)?;
    Ok(Ended { teams, people })
}

/// A page of the tenant's providers.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Admin, Tenant>,
    page: &Request,
) -> Result<Vec<IdentityProvider>> {
    let statement = list_sql!("identity_providers/list").by(page.order);
    sql.fetch_all(statement, &[&may.tenant_id(), &page.after, &page.rows()])
}
