//! Reviewers: the roles that a person has in approvals.
//!
//! Not here: what a reviewer role allows; an approval names the role that may decide it.

use super::page::Request;
use super::principals::{Named, person};
use super::tenants::Tenant;
use super::users::Person;
use super::{Columns, Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, May};
use crate::{from_row, list_sql, sql};
use std::collections::HashMap;
use time::OffsetDateTime;
use uuid::Uuid;

/// Roles of one reviewer at most.
pub const ROLES_MOST: usize = 50;

/// Whether a text is a reviewer role: 1 to 40 lowercase letters, digits and hyphens, no hyphen first.
pub fn is_role(text: &str) -> bool {
    let of_role = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=40).contains(&text.len()) && text.bytes().all(of_role) && !text.starts_with('-')
}

/// A person with at least one reviewer role.
#[derive(Debug, Clone)]
pub struct Reviewer {
    /// The person.
    pub user_id: Uuid,
    /// The person's email.
    pub email: Option<String>,
    /// What the person is called.
    pub display_name: String,
    /// The roles, in the order of their texts.
    pub roles: Vec<String>,
}

/// Gives a person a reviewer role. One that is held already stays.
///
/// # Errors
/// `not-found`, `conflict`: the person was deactivated, or has [`ROLES_MOST`] roles;
/// `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    creator: Uuid,
    named: &Named,
    role: &str,
    now: OffsetDateTime,
) -> Result<Reviewer> {
    let tenant_id = may.tenant_id();
    let user_id = person(tx, tenant_id, named)?;
    tx.execute(
        sql!("reviewers/insert"),
        &[&tenant_id, &user_id, &role, &creator, &now],
    )?;
    let reviewer: Reviewer = tx.fetch_one(sql!("reviewers/find"), &[&tenant_id, &user_id])?;
    if reviewer.roles.len() > ROLES_MOST {
        let message = format!("A reviewer has {ROLES_MOST} roles at most. Remove one first.");
        return Err(Error::new(Code::Conflict, message));
    }
    Ok(reviewer)
}

from_row!(Reviewer {
    user_id,
    email,
    display_name,
    roles
});

/// A user's reviewer roles, in the order of their texts.
pub fn roles(sql: &mut impl Sql, tenant_id: Uuid, user_id: Uuid) -> Result<Vec<String>> {
    let rows = sql.query(sql!("reviewers/roles"), &[&tenant_id, &user_id])?;
    rows.iter().map(Columns::only).collect()
}

/// Whether somebody who is active has this reviewer role.
pub(super) fn has_role(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    user_id: Uuid,
    role: &str,
) -> Result<bool> {
    sql.query_one(sql!("reviewers/has_role"), &[&tenant_id, &user_id, &role])?
        .only()
}

/// A person of a tenant.
pub type OfTenant = (Uuid, Uuid);

/// The reviewer roles of these people, of each without any none.
pub fn roles_of_many(
    sql: &mut impl Sql,
    people: &[OfTenant],
) -> Result<HashMap<OfTenant, Vec<String>>> {
    let (tenants, users): (Vec<Uuid>, Vec<Uuid>) = people.iter().copied().unzip();
    let mut found: HashMap<OfTenant, Vec<String>> = HashMap::new();
    for row in sql.query(sql!("reviewers/roles_of_many"), &[&tenants, &users])? {
        let person = (row.column("tenant_id")?, row.column("user_id")?);
        found.entry(person).or_default().push(row.column("role")?);
    }
    Ok(found)
}

/// A page of the tenant's reviewers.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Admin, Tenant>,
    page: &Request,
) -> Result<Vec<Reviewer>> {
    let statement = list_sql!("reviewers/list").by(page.order);
    sql.fetch_all(statement, &[&may.tenant_id(), &page.after, &page.rows()])
}

/// Takes a reviewer role away from a person; one who does not have it is as wanted.
pub fn delete(tx: &mut Tx<'_>, may: &impl May<Admin, Person>, role: &str) -> Result<()> {
    tx.execute(
        sql!("reviewers/delete"),
        &[&may.tenant_id(), &may.object_id(), &role],
    )?;
    Ok(())
}
