//! The bounds of a list: the projects on which its reader has a role, and the one project that the
//! reader's key may be limited to.
//!
//! Not here: whether the reader is bound at all (`authz` says it in the [`Listing`]).

use super::{Columns, Sql};
use crate::error::Result;
use crate::proof::Listing;
use crate::sql;
use uuid::Uuid;

/// What a list goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readable {
    /// All of the tenant.
    All,
    /// What lies in this project.
    OfProject(Uuid),
    /// What lies in the projects that this user may read.
    By(Uuid),
    /// Nothing.
    Nothing,
}

/// What a list goes through that its filters keep to `named`, if they name a project. A project that
/// cannot be read is looked into no further than one that is not there.
pub(super) fn readable<K>(
    sql: &mut impl Sql,
    listing: &Listing<K>,
    named: Option<Uuid>,
) -> Result<Readable>
where
    K: crate::proof::Kind,
{
    let project_id = match (listing.project_id(), named) {
        (Some(limit), Some(named)) if limit != named => return Ok(Readable::Nothing),
        (limit, named) => limit.or(named),
    };
    Ok(match (listing.reader(), project_id) {
        (None, None) => Readable::All,
        (None, Some(project_id)) => Readable::OfProject(project_id),
        (Some(user_id), None) => Readable::By(user_id),
        (Some(user_id), Some(project_id)) => {
            let tenant_id = listing.caller().tenant_id;
            if has_way(sql, tenant_id, project_id, user_id)? {
                Readable::OfProject(project_id)
            } else {
                Readable::Nothing
            }
        }
    })
}

/// Whether the user has a way into the project that is not a tenant admin's.
pub(super) fn has_way(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    project_id: Uuid,
    user_id: Uuid,
) -> Result<bool> {
    let way = sql.query_one(
        sql!("projects/has_way"),
        &[&tenant_id, &project_id, &user_id],
    )?;
    way.only()
}
