//! Who has access to a project, and by which ways (section 2.4).
//!
//! Not here: the decision whether somebody may do something (`authz`).

use super::Sql;
use super::projects::Project;
use crate::error::Result;
use crate::proof::{May, Write};
use crate::sql;
use uuid::Uuid;

/// Whether this user is an admin of the project by any way: what tells who sees emails.
///
/// # Errors
/// `database-unavailable`.
pub fn administers(
    sql: &mut impl Sql,
    may: &impl May<Write, Project>,
    user_id: Uuid,
) -> Result<bool> {
    let row = sql.query_one(
        sql!("project_access/administers"),
        &[&may.tenant_id(), &may.object_id(), &user_id],
    )?;
    Ok(row.get(0))
}
