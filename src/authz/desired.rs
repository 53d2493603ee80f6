//! What the authorization server is to be told: Postgres holds it, an object a row (invariant 3).
//!
//! Every change of a role marks the objects that it concerns in its own transaction, whether or not
//! authorization is on.
//!
//! Not here: how it is told.

use crate::error::Result;
use crate::sql;
use crate::store::{Sql, Tx};
use std::fmt;
use uuid::Uuid;

/// An object with stored permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    /// A tenant.
    Tenant(Uuid),
    /// An org of it.
    Org(Uuid),
    /// A team of it.
    Team(Uuid),
    /// A project of it.
    Project(Uuid),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant(id) => write!(f, "tenant:{id}"),
            Self::Org(id) => write!(f, "org:{id}"),
            Self::Team(id) => write!(f, "team:{id}"),
            Self::Project(id) => write!(f, "project:{id}"),
        }
    }
}

/// Marks objects whose permissions this transaction changes.
///
/// # Errors
/// `database-unavailable`.
pub fn mark(tx: &mut Tx<'_>, tenant_id: Uuid, objects: &[Object]) -> Result<()> {
    // In one order, or two changes could wait for each other.
    let mut names: Vec<String> = objects.iter().map(Object::to_string).collect();
    names.sort_unstable();
    names.dedup();
    tx.execute(sql!("authz/mark"), &[&tenant_id, &names])?;
    Ok(())
}
