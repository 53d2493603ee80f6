//! Variables of a tenant's environments. They are no secrets: members read them, and so do runs of flows.
//!
//! Guarantees: in one environment a name is a variable or a secret, never both, whatever the case of its letters. Both are
//! put under the tenant's lock, and look at the other first.
//!
//! An environment has no row: it is there as soon as a variable, a secret or `SVC_ENVIRONMENT` names it.

use super::page::TextRequest;
use super::tenants::{self, Tenant};
use super::{Columns, FromRow, Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, May, Read};
use crate::{from_row, sql};
use time::OffsetDateTime;
use uuid::Uuid;

/// Bytes of a value at most.
pub const VALUE_MOST_BYTES: usize = 32 * 1024;

/// Bytes of the names and values of an environment at most. Each run of a tenant keeps them.
pub const ENVIRONMENT_MOST_BYTES: usize = 64 * 1024;

/// Variables of a tenant at most, in all environments.
const VARIABLES_MOST: i64 = 1_000;

/// Where a variable or a secret stands.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The environment.
    pub environment: &'a str,
    /// The name.
    pub name: &'a str,
}

/// A variable.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Its environment.
    pub environment: String,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Who put it first.
    pub created_by: Uuid,
    /// When it was put first.
    pub created_at: OffsetDateTime,
    /// Who put it last.
    pub updated_by: Uuid,
    /// When it was put last.
    pub updated_at: OffsetDateTime,
}

from_row!(Variable {
    environment,
    name,
    value,
    created_by,
    created_at,
    updated_by,
    updated_at
});

/// What stands beside a name.
struct Beside {
    variable: Option<String>,
    secret: Option<String>,
    other_bytes: i64,
    count: i64,
}

from_row!(Beside {
    variable,
    secret,
    other_bytes,
    count
});

/// What a name is in its environment.
#[derive(Debug, Clone, Copy)]
pub enum Named {
    /// A variable.
    Variable,
    /// A secret.
    Secret,
}

/// The name cannot be put: it, or one that differs in the case of its letters alone, is `taken` there by another kind or
/// another name.
pub fn taken(at: Place<'_>, taken: &str, by: Named) -> Error {
    let what = match by {
        Named::Variable => "a variable",
        Named::Secret => "a secret",
    };
    let (environment, name) = (at.environment, at.name);
    match taken == name {
        true => Error::new(
            Code::AlreadyExists,
            format!(
                "The environment {environment} has {what} {name}. A name is a variable or a secret, never both: delete it first, or choose another name."
            ),
        ),
        false => Error::new(
            Code::Conflict,
            format!(
                "The environment {environment} has {what} {taken}, and names that differ in the case of their letters alone are not taken. Choose another name."
            ),
        ),
    }
}

fn beside(tx: &mut Tx<'_>, tenant_id: Uuid, at: Place<'_>) -> Result<Beside> {
    // One name at a time, so that the bounds hold, and neither kind misses the other.
    tenants::lock(tx, tenant_id)?;
    let row = tx.query_one(
        sql!("environments/beside"),
        &[&tenant_id, &at.environment, &at.name],
    )?;
    Beside::from_row(&row)
}

/// No variable stands in the way of a new secret. Until the transaction ends none is put.
///
/// # Errors
/// `already-exists`, `conflict`: one does. `database-unavailable`.
pub fn check_secret(tx: &mut Tx<'_>, tenant_id: Uuid, at: Place<'_>) -> Result<()> {
    match beside(tx, tenant_id, at)?.variable {
        Some(variable) => Err(taken(at, &variable, Named::Variable)),
        None => Ok(()),
    }
}

/// Puts a variable. The flag is true if the name is new.
///
/// # Errors
/// `already-exists`: it is a secret. `conflict`: a name differs in case alone, or a bound is reached. `database-unavailable`.
pub fn put(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    at: Place<'_>,
    value: &str,
    creator: &Caller,
    now: OffsetDateTime,
) -> Result<(Variable, bool)> {
    let tenant_id = may.tenant_id();
    let beside = beside(tx, tenant_id, at)?;
    if let Some(secret) = &beside.secret {
        return Err(taken(at, secret, Named::Secret));
    }
    if let Some(variable) = beside.variable.as_ref().filter(|found| *found != at.name) {
        return Err(taken(at, variable, Named::Variable));
    }
    let is_new = beside.variable.is_none();
    if is_new && beside.count >= VARIABLES_MOST {
        let message = format!("A tenant has {VARIABLES_MOST} variables at most. Delete one.");
        return Err(Error::new(Code::Conflict, message).detail("most", VARIABLES_MOST));
    }
    let others = usize::try_from(beside.other_bytes).unwrap_or(usize::MAX);
    if others.saturating_add(at.name.len() + value.len()) > ENVIRONMENT_MOST_BYTES {
        let message = format!(
            "The names and values of the environment {} would have more than {ENVIRONMENT_MOST_BYTES} bytes. Delete what is not used.",
            at.environment
        );
        return Err(Error::new(Code::Conflict, message).detail("mostBytes", ENVIRONMENT_MOST_BYTES));
    }
    let row = tx.query_one(
        sql!("environments/put"),
        &[
            &tenant_id,
            &at.environment,
            &at.name,
            &value,
            &creator.user_id,
            &now,
        ],
    )?;
    Ok((Variable::from_row(&row)?, is_new))
}

/// The variable of that name.
pub fn find(
    sql: &mut impl Sql,
    may: &impl May<Read, Tenant>,
    at: Place<'_>,
) -> Result<Option<Variable>> {
    sql.fetch_optional(
        sql!("environments/find"),
        &[&may.tenant_id(), &at.environment, &at.name],
    )
}

/// A page of an environment's variables, by name.
pub fn variables(
    sql: &mut impl Sql,
    may: &impl May<Read, Tenant>,
    environment: &str,
    page: &TextRequest,
) -> Result<Vec<Variable>> {
    let after = page.after.as_ref().map(|(name, _)| name);
    sql.fetch_all(
        sql!("environments/variables"),
        &[&may.tenant_id(), &environment, &after, &page.rows()],
    )
}

/// A page of the names of the tenant's environments. `served`: the one that this server serves.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Read, Tenant>,
    served: Option<&str>,
    page: &TextRequest,
) -> Result<Vec<String>> {
    let after = page.after.as_ref().map(|(name, _)| name);
    let rows = sql.query(
        sql!("environments/list"),
        &[&may.tenant_id(), &served, &after, &page.rows()],
    )?;
    rows.iter().map(Columns::only).collect()
}

/// Deletes it. False: there is none.
pub fn delete(tx: &mut Tx<'_>, may: &impl May<Admin, Tenant>, at: Place<'_>) -> Result<bool> {
    let touched = tx.execute(
        sql!("environments/delete"),
        &[&may.tenant_id(), &at.environment, &at.name],
    )?;
    Ok(touched > 0)
}
