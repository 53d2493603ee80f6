//! People and service accounts: the users of a tenant.
//!
//! A person is matched by email, whatever its case; a service account by its name. A user is never
//! deleted, since what they did refers to them: they are deactivated, which ends their keys, their
//! open enrolments and every way that they had.
//!
//! Guarantees: a tenant keeps an active admin. Whoever takes that away takes turns on the tenant's
//! row, and whoever deactivates a user waits for those who give the user a role at that moment.

use super::page::{Order, Request};
use super::principals::PrincipalKind;
use super::tenants::{self, Tenant};
use super::{Find, Finding, Sql, Tx, enrolments, tokens};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Kind, May, Scope};
use crate::{find_sql, sql};
use postgres::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

/// A role in the tenant (section 5.2).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum TenantRole {
    /// Reads what belongs to the tenant as a whole.
    Member,
    /// Decides about everything in the tenant.
    Admin,
}

impl TenantRole {
    /// As it is written.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }

    /// A text that this version does not know allows the least.
    pub(super) fn of(text: &str) -> Self {
        match text {
            "admin" => Self::Admin,
            _ => Self::Member,
        }
    }
}

/// A user of a tenant.
#[derive(Debug, Clone)]
pub struct User {
    /// Their id.
    pub user_id: Uuid,
    /// What they are.
    pub kind: PrincipalKind,
    /// A person's email, as it was given. The seed user has none.
    pub email: Option<String>,
    /// What they are called.
    pub display_name: String,
    /// Their role in the tenant.
    pub tenant_role: TenantRole,
    /// Who added them. Seeded users have none.
    pub created_by: Option<Uuid>,
    /// When they were added.
    pub created_at: OffsetDateTime,
    /// When they were deactivated.
    pub deactivated_at: Option<OffsetDateTime>,
}

impl User {
    /// Nothing is given to, or changed of, a user who was deactivated.
    ///
    /// # Errors
    /// `conflict`.
    pub fn active(self) -> Result<Self> {
        if self.deactivated_at.is_none() {
            return Ok(self);
        }
        let message = format!("User {} was deactivated. Add another one.", self.user_id);
        Err(Error::new(Code::Conflict, message).detail("userId", self.user_id.to_string()))
    }
}

const FINDING: Finding = find_sql!("users/find");

/// A person.
#[derive(Debug, Clone)]
pub struct Person(pub User);

impl Kind for Person {
    const NAME: &'static str = "user";
    fn id(&self) -> Uuid {
        self.0.user_id
    }
    fn scope(&self) -> Scope {
        Scope::OnTenant
    }
}

impl Find for Person {
    const FINDING: Finding = FINDING;
    fn read(row: &Row) -> Result<Option<Self>> {
        let user = Some(user(row)).filter(|user| user.kind == PrincipalKind::User);
        Ok(user.map(Self))
    }
}

/// A service account.
#[derive(Debug, Clone)]
pub struct ServiceAccount(pub User);

impl Kind for ServiceAccount {
    const NAME: &'static str = "service-account";
    fn id(&self) -> Uuid {
        self.0.user_id
    }
    fn scope(&self) -> Scope {
        Scope::OnTenant
    }
}

impl Find for ServiceAccount {
    const FINDING: Finding = FINDING;
    fn read(row: &Row) -> Result<Option<Self>> {
        let user = Some(user(row)).filter(|user| user.kind == PrincipalKind::ServiceAccount);
        Ok(user.map(Self))
    }
}

fn user(row: &Row) -> User {
    User {
        user_id: row.get(0),
        kind: PrincipalKind::stored(row.get(1)),
        email: row.get(2),
        display_name: row.get(3),
        tenant_role: TenantRole::of(row.get(4)),
        created_by: row.get(5),
        created_at: row.get(6),
        deactivated_at: row.get(7),
    }
}

/// As it is stored.
fn kind_text(kind: PrincipalKind) -> &'static str {
    match kind {
        PrincipalKind::User => "person",
        PrincipalKind::ServiceAccount => "service-account",
    }
}

/// An email as it is matched.
pub(super) fn email_key(email: &str) -> String {
    email.to_lowercase()
}

/// A user of the tenant, of either kind.
///
/// # Errors
/// `database-unavailable`.
pub fn find(sql: &mut impl Sql, tenant_id: Uuid, user_id: Uuid) -> Result<Option<User>> {
    let row = sql.query_opt(FINDING.alone, &[&tenant_id, &user_id])?;
    Ok(row.as_ref().map(user))
}

/// A person of the tenant by email, whatever its case.
///
/// # Errors
/// `database-unavailable`.
pub fn find_by_email(sql: &mut impl Sql, tenant_id: Uuid, email: &str) -> Result<Option<Person>> {
    let row = sql.query_opt(
        sql!("users/find_by_email"),
        &[&tenant_id, &email_key(email)],
    )?;
    Ok(row.as_ref().map(user).map(Person))
}

/// A user of the tenant, who stays as they are until the transaction ends.
///
/// # Errors
/// `database-unavailable`.
pub fn lock(tx: &mut Tx<'_>, tenant_id: Uuid, user_id: Uuid) -> Result<Option<User>> {
    let row = tx.query_opt(sql!("users/lock"), &[&tenant_id, &user_id])?;
    Ok(row.as_ref().map(user))
}

/// A person to add.
#[derive(Debug)]
pub struct NewPerson<'a> {
    /// The id.
    pub user_id: Uuid,
    /// The email.
    pub email: &'a str,
    /// What the person is called.
    pub display_name: &'a str,
    /// The role in the tenant.
    pub tenant_role: TenantRole,
}

/// Adds a person.
///
/// # Errors
/// `already-exists` with the id of the person who has this email; `database-unavailable`.
pub fn insert_person(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    creator: Uuid,
    new: &NewPerson<'_>,
    now: OffsetDateTime,
) -> Result<Person> {
    let tenant_id = may.tenant_id();
    let inserted = tx.query_opt(
        sql!("users/insert"),
        &[
            &tenant_id,
            &new.user_id,
            &kind_text(PrincipalKind::User),
            &new.email,
            &email_key(new.email),
            &new.display_name,
            &new.tenant_role.text(),
            &creator,
            &now,
        ],
    )?;
    if let Some(row) = inserted {
        return Ok(Person(user(&row)));
    }
    let held = find_by_email(tx, tenant_id, new.email)?
        .ok_or_else(|| Error::internal("an email is taken by nobody"))?;
    Err(already("A person with this email", held.id()))
}

fn already(what: &str, user_id: Uuid) -> Error {
    let message = format!("{what} is among the tenant's users already, with the id {user_id}.");
    Error::new(Code::AlreadyExists, message).detail("id", user_id.to_string())
}

/// Adds a service account.
///
/// # Errors
/// `already-exists` with the id of the one that has this name; `database-unavailable`.
pub fn insert_account(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    creator: Uuid,
    user_id: Uuid,
    name: &str,
    now: OffsetDateTime,
) -> Result<ServiceAccount> {
    let tenant_id = may.tenant_id();
    refuse_held_name(tx, tenant_id, user_id, name)?;
    let none: Option<&str> = None;
    let row = tx.query_one(
        sql!("users/insert"),
        &[
            &tenant_id,
            &user_id,
            &kind_text(PrincipalKind::ServiceAccount),
            &none,
            &none,
            &name,
            &TenantRole::Member.text(),
            &creator,
            &now,
        ],
    )?;
    Ok(ServiceAccount(user(&row)))
}

/// A name stands for one active service account. Whoever takes one takes turns.
fn refuse_held_name(tx: &mut Tx<'_>, tenant_id: Uuid, user_id: Uuid, name: &str) -> Result<()> {
    tenants::lock(tx, tenant_id)?;
    let held = tx.query_opt(sql!("users/account_named"), &[&tenant_id, &name, &user_id])?;
    match held {
        Some(row) => Err(already("A service account with this name", row.get(0))),
        None => Ok(()),
    }
}

/// Which users.
#[derive(Debug, Default, Clone)]
pub struct Filter<'a> {
    /// Those with this role in the tenant.
    pub tenant_role: Option<TenantRole>,
    /// Those who are active, or those who are not.
    pub active: Option<bool>,
    /// The one with this email, whatever its case.
    pub email: Option<&'a str>,
}

/// A page of the tenant's users of one kind.
///
/// # Errors
/// `database-unavailable`.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Admin, Tenant>,
    kind: PrincipalKind,
    filter: &Filter<'_>,
    page: &Request,
) -> Result<Vec<User>> {
    let statement = match page.order {
        Order::Asc => sql!("users/list_asc"),
        Order::Desc => sql!("users/list_desc"),
    };
    let rows = sql.query(
        statement,
        &[
            &may.tenant_id(),
            &kind_text(kind),
            &filter.tenant_role.map(TenantRole::text),
            &filter.active,
            &filter.email.map(email_key),
            &page.after,
            &page.rows(),
        ],
    )?;
    Ok(rows.iter().map(user).collect())
}

/// Changes a person.
///
/// # Errors
/// `conflict`: they were deactivated; `last-admin`; `database-unavailable`.
pub fn change_person(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Person>,
    display_name: Option<&str>,
    tenant_role: Option<TenantRole>,
) -> Result<Person> {
    let (tenant_id, user_id) = (may.tenant_id(), may.object_id());
    if tenant_role.is_some() {
        tenants::lock(tx, tenant_id)?;
    }
    let held = lock(tx, tenant_id, user_id)?
        .ok_or_else(|| Error::not_found(Person::NAME, user_id))?
        .active()?;
    if tenant_role == Some(TenantRole::Member) && held.tenant_role == TenantRole::Admin {
        refuse_last_admin(tx, tenant_id, user_id)?;
    }
    let row = tx.query_one(
        sql!("users/update"),
        &[
            &tenant_id,
            &user_id,
            &display_name,
            &tenant_role.map(TenantRole::text),
        ],
    )?;
    Ok(Person(user(&row)))
}

/// Renames a service account.
///
/// # Errors
/// `conflict`: it was deactivated; `already-exists`; `database-unavailable`.
pub fn rename_account(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, ServiceAccount>,
    name: &str,
) -> Result<ServiceAccount> {
    let (tenant_id, user_id) = (may.tenant_id(), may.object_id());
    refuse_held_name(tx, tenant_id, user_id, name)?;
    lock(tx, tenant_id, user_id)?
        .ok_or_else(|| Error::not_found(ServiceAccount::NAME, user_id))?
        .active()?;
    let role: Option<&str> = None;
    let row = tx.query_one(sql!("users/update"), &[&tenant_id, &user_id, &name, &role])?;
    Ok(ServiceAccount(user(&row)))
}

fn refuse_last_admin(tx: &mut Tx<'_>, tenant_id: Uuid, user_id: Uuid) -> Result<()> {
    let row = tx.query_one(sql!("users/has_other_admin"), &[&tenant_id, &user_id])?;
    if row.get(0) {
        return Ok(());
    }
    Err(Error::new(
        Code::LastAdmin,
        "This is the tenant's last admin. Make somebody else an admin first.",
    ))
}

/// Where a user has a role of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// An org.
    Org(Uuid),
    /// A team.
    Team(Uuid),
    /// A project.
    Project(Uuid),
}

/// A user who was deactivated.
#[derive(Debug)]
pub struct Deactivated {
    /// The user.
    pub user: User,
    /// Where they have roles, which count no longer.
    pub standings: Vec<Standing>,
    /// It happened now; otherwise they were deactivated already.
    pub changed: bool,
}

/// Deactivates a user: their keys, open enrolments and roles end.
///
/// # Errors
/// `last-admin`; `database-unavailable`.
pub fn deactivate<K: Kind>(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, K>,
    now: OffsetDateTime,
) -> Result<Deactivated> {
    let (tenant_id, user_id) = (may.tenant_id(), may.object_id());
    tenants::lock(tx, tenant_id)?;
    let held = tx
        .query_opt(sql!("users/lock_to_end"), &[&tenant_id, &user_id])?
        .ok_or_else(|| Error::not_found(K::NAME, user_id))?;
    let mut held = user(&held);
    let changed = held.deactivated_at.is_none();
    if changed {
        if held.tenant_role == TenantRole::Admin {
            refuse_last_admin(tx, tenant_id, user_id)?;
        }
        let ended = tx.query_one(sql!("users/deactivate"), &[&tenant_id, &user_id, &now])?;
        held = user(&ended);
        tokens::revoke_all(tx, tenant_id, user_id, now)?;
        enrolments::end_open(tx, tenant_id, user_id, now)?;
    }
    let rows = tx.query(sql!("users/standings"), &[&tenant_id, &user_id])?;
    let standings = rows.iter().map(|row| {
        let id = row.get(1);
        match row.get(0) {
            "org" => Standing::Org(id),
            "team" => Standing::Team(id),
            _ => Standing::Project(id),
        }
    });
    Ok(Deactivated {
        user: held,
        standings: standings.collect(),
        changed,
    })
}
