//! The tuples that the authorization server should hold. PostgreSQL has them, one row an object
//! (`postgres-is-the-truth`).
//!
//! Every change of a role marks the objects that it concerns, in its own transaction, whether or
//! not authorization is on.
//!
//! Not here: writing them to the authorization server.

use crate::authz::fga::Tuple;
use crate::error::Result;
use crate::store::authz::{self, Desired, Many};
use crate::store::{Sql, Tx};
use std::collections::BTreeSet;
use std::fmt;
use uuid::Uuid;

/// Objects whose tuples are read with one statement.
const BATCH: u16 = 200;

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
pub fn mark(tx: &mut Tx<'_>, tenant_id: Uuid, objects: &[Object]) -> Result<()> {
    if objects.is_empty() {
        return Ok(());
    }
    // In one order, or two changes could wait for each other.
    let mut names: Vec<String> = objects.iter().map(Object::to_string).collect();
    names.sort_unstable();
    names.dedup();
    authz::mark(tx, tenant_id, &names)
}

impl Object {
    /// The object of this name, as it is written. None: no object of ours has it.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (kind, id) = name.split_once(':')?;
        let id = Uuid::try_parse(id).ok()?;
        let object = match kind {
            "tenant" => Self::Tenant(id),
            "org" => Self::Org(id),
            "team" => Self::Team(id),
            "project" => Self::Project(id),
            _ => return None,
        };
        // There are other spellings of a UUID.
        (object.to_string() == name).then_some(object)
    }
}

/// Whether this program stores tuples of this type and relation. Of others it knows nothing: they
/// are a newer program's.
pub(super) fn is_known(tuple: &Tuple) -> bool {
    let kind = tuple.object.split(':').next().unwrap_or_default();
    let relations: &[&str] = match kind {
        "tenant" => &["admin", "member"],
        "org" => &["tenant", "admin"],
        "team" => &["tenant", "admin", "member"],
        "project" => &["tenant", "org", "owner", "admin", "editor", "viewer"],
        _ => &[],
    };
    relations.contains(&tuple.relation.as_str())
}

/// The tuples that there should be of an object of the tenant, in this moment.
pub(super) fn tuples_of(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    object: &str,
) -> Result<BTreeSet<Tuple>> {
    let found = match Object::parse(object) {
        Some(Object::Tenant(id)) if id == tenant_id => authz::desired_of_tenant(sql, tenant_id)?,
        Some(Object::Org(id)) => authz::desired_of(sql, tenant_id, Many::Orgs, &[id])?,
        Some(Object::Team(id)) => authz::desired_of(sql, tenant_id, Many::Teams, &[id])?,
        Some(Object::Project(id)) => authz::desired_of(sql, tenant_id, Many::Projects, &[id])?,
        Some(Object::Tenant(_)) | None => Vec::new(),
    };
    Ok(found.into_iter().map(tuple).collect())
}

/// Every tuple that there should be in the tenant's store, some objects at a time.
pub(super) fn each_tuple(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    mut each: impl FnMut(Tuple) -> Result<()>,
) -> Result<()> {
    for desired in authz::desired_of_tenant(sql, tenant_id)? {
        each(tuple(desired))?;
    }
    for kind in [Many::Orgs, Many::Teams, Many::Projects] {
        let mut after = Uuid::nil();
        loop {
            let ids = authz::ids(sql, tenant_id, kind, after, i64::from(BATCH))?;
            for desired in authz::desired_of(sql, tenant_id, kind, &ids)? {
                each(tuple(desired))?;
            }
            match ids.last() {
                Some(last) if ids.len() == usize::from(BATCH) => after = *last,
                _ => break,
            }
        }
    }
    Ok(())
}

fn tuple(desired: Desired) -> Tuple {
    Tuple {
        user: desired.user,
        relation: desired.relation,
        object: desired.object,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_in_no_other_spelling() {
        let id = Uuid::from_u128(0xabc);
        for object in [
            Object::Tenant(id),
            Object::Org(id),
            Object::Team(id),
            Object::Project(id),
        ] {
            assert_eq!(Object::parse(&object.to_string()), Some(object));
        }
        let upper = format!("org:{}", id.to_string().to_uppercase());
        let simple = format!("org:{}", id.simple());
        for name in ["org", "org:", "run:1", "user:x", &upper, &simple] {
            assert_eq!(Object::parse(name), None, "{name}");
        }
    }
}
