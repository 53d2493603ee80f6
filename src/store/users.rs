//! People and service accounts: the users of a tenant.
//!
//! A person is identified by email, ignoring case; a service account by its name. A user is never
//! deleted, because what they did refers to them. Deactivation ends their keys, their open
//! enrolments and all their roles.
//!
//! Guarantees: a tenant keeps an active admin. A change that removes one locks the tenant's row,
//! and a deactivation waits for concurrent grants of a role to that user.

use super::page::Request;
use super::principals::{PrincipalKind, email_key};
use super::tenants::{self, Tenant};
use super::{Columns, Find, Finding, FromRow, Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Kind, May, Scope};
use crate::{find_sql, from_row, list_sql, sql, texts};
use postgres::Row;
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    // Specification, section 5.2.
    /// A role in the tenant.
    TenantRole {
        /// Reads what belongs to the tenant as a whole.
        Member = "member",
        /// Decides about everything in the tenant.
        Admin = "admin",
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
    /// Who added them. Seeded users have none, and people whom an identity provider added.
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
        let user = Some(User::from_row(row)?).filter(|user| user.kind == PrincipalKind::User);
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
        let user =
            Some(User::from_row(row)?).filter(|user| user.kind == PrincipalKind::ServiceAccount);
        Ok(user.map(Self))
    }
}

from_row!(User {
    user_id,
    kind,
    email,
    display_name,
    tenant_role,
    created_by,
    created_at,
    deactivated_at
});

/// A user of the tenant, of either kind.
pub fn find(sql: &mut impl Sql, tenant_id: Uuid, user_id: Uuid) -> Result<Option<User>> {
    sql.fetch_optional(FINDING.alone, &[&tenant_id, &user_id])
}

/// A person of the tenant by email, whatever its case.
pub fn find_by_email(sql: &mut impl Sql, tenant_id: Uuid, email: &str) -> Result<Option<Person>> {
    let user = sql.fetch_optional(
        sql!("users/find_by_email"),
        &[&tenant_id, &email_key(email)],
    )?;
    Ok(user.map(Person))
}

/// A user of the tenant, who stays as they are until the transaction ends.
pub fn lock(tx: &mut Tx<'_>, tenant_id: Uuid, user_id: Uuid) -> Result<Option<User>> {
    tx.fetch_optional(sql!("users/lock"), &[&tenant_id, &user_id])
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
    if let Some(person) = add_person(tx, tenant_id, Some(creator), new, now)? {
        return Ok(person);
    }
    let held = find_by_email(tx, tenant_id, new.email)?
        .ok_or_else(|| Error::internal("an email is taken by nobody"))?;
    Err(already("A person with this email", held.id()))
}

/// Adds a person whom an identity provider vouches for. None: somebody has this email already.
pub fn insert_vouched(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    new: &NewPerson<'_>,
    now: OffsetDateTime,
) -> Result<Option<Person>> {
    add_person(tx, tenant_id, None, new, now)
}

/// None: somebody has the email.
fn add_person(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    creator: Option<Uuid>,
    new: &NewPerson<'_>,
    now: OffsetDateTime,
) -> Result<Option<Person>> {
    let inserted = tx.fetch_optional(
        sql!("users/insert"),
        &[
            &tenant_id,
            &new.user_id,
            &PrincipalKind::User,
            &new.email,
            &email_key(new.email),
            &new.display_name,
            &new.tenant_role,
            &creator,
            &now,
        ],
    )?;
    Ok(inserted.map(Person))
}

/// Gives an email to a person who has none. False: they have none still, because somebody else has this one.
pub fn give_email(tx: &mut Tx<'_>, tenant_id: Uuid, user_id: Uuid, email: &str) -> Result<bool> {
    let row = tx.query_one(
        sql!("users/give_email"),
        &[&tenant_id, &user_id, &email, &email_key(email)],
    )?;
    row.only()
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
    let user = tx.fetch_one(
        sql!("users/insert"),
        &[
            &tenant_id,
            &user_id,
            &PrincipalKind::ServiceAccount,
            &none,
            &none,
            &name,
            &TenantRole::Member,
            &creator,
            &now,
        ],
    )?;
    Ok(ServiceAccount(user))
}

/// A name stands for one active service account. Whoever takes one takes turns.
fn refuse_held_name(tx: &mut Tx<'_>, tenant_id: Uuid, user_id: Uuid, name: &str) -> Result<()> {
    tenants::lock(tx, tenant_id)?;
    let held = tx.query_opt(sql!("users/account_named"), &[&tenant_id, &name, &user_id])?;
    match held {
        Some(row) => Err(already("A service account with this name", row.only()?)),
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
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Admin, Tenant>,
    kind: PrincipalKind,
    filter: &Filter<'_>,
    page: &Request,
) -> Result<Vec<User>> {
    let statement = list_sql!("users/list").by(page.order);
    sql.fetch_all(
        statement,
        &[
            &may.tenant_id(),
            &kind,
            &filter.tenant_role,
            &filter.active,
            &filter.email.map(email_key),
            &page.after,
            &page.rows(),
        ],
    )
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
    let user = tx.fetch_one(
        sql!("users/update"),
        &[&tenant_id, &user_id, &display_name, &tenant_role],
    )?;
    Ok(Person(user))
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
    let role: Option<TenantRole> = None;
    let user = tx.fetch_one(sql!("users/update"), &[&tenant_id, &user_id, &name, &role])?;
    Ok(ServiceAccount(user))
}

pub(super) fn refuse_last_admin(tx: &mut Tx<'_>, tenant_id: Uuid, user_id: Uuid) -> Result<()> {
    let row = tx.query_one(sql!("users/has_other_admin"), &[&tenant_id, &user_id])?;
    if row.only()? {
        return Ok(());
    }
    Err(Error::new(
        Code::LastAdmin,
        "This is the tenant's last admin. Make somebody else an admin first.",
    ))
}
