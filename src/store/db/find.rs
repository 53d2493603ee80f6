//! Finds the row of an access check, by its tenant and its id.
//!
//! The statement runs alone, or in one snapshot with `authz/in_sync`, and for a member key also with the roles of the key's
//! owner.

use super::statement::Sql;
use crate::error::Result;
use postgres::Row;

/// The statement `NOUN/VERB`, whose first parameter is the tenant, with four columns more at the end of each row: what
/// `authz/in_sync` says as of the same moment, nulls where the tenant has no store.
#[macro_export]
macro_rules! in_sync_sql {
    ($name:literal) => {
        concat!(
            "with found as (\n",
            $crate::sql!($name),
            "\n), in_sync as (\n",
            $crate::sql!("authz/in_sync"),
            "\n) select found.*, in_sync.* from found left join in_sync on true"
        )
    };
}

/// How a kind of row is found by its tenant and its id.
#[derive(Debug, Clone, Copy)]
pub struct Finding {
    pub(in crate::store) alone: &'static str,
    pub(in crate::store) beside_in_sync: &'static str,
    /// None: its access is checked on the tenant.
    pub(in crate::store) beside_owner: Option<&'static str>,
}

/// The [`Finding`] of the statement `NOUN/VERB`. Where roles are held on what it finds, `kind` and `column` say on what: an
/// org, a team, or a project.
#[macro_export]
macro_rules! find_sql {
    ($name:literal) => {
        $crate::store::Finding {
            alone: $crate::sql!($name),
            beside_in_sync: $crate::in_sync_sql!($name),
            beside_owner: None,
        }
    };
    ($name:literal, $kind:literal, $column:literal) => {
        $crate::store::Finding {
            alone: $crate::sql!($name),
            beside_in_sync: $crate::in_sync_sql!($name),
            beside_owner: Some(concat!(
                "with found as (\n",
                $crate::sql!($name),
                "\n), in_sync as (\n",
                $crate::sql!("authz/in_sync"),
                "\n) select found.*, in_sync.*, owner.* from found left join in_sync on true cross join key_owner(",
                "of_tenant_id => $1, of_user_id => $3, of_kind => '",
                $kind,
                "', of_id => found.",
                $column,
                ") owner"
            )),
        }
    };
}

/// A kind of row that access is checked on: found in the caller's own tenant, or not at all.
pub trait Find: crate::proof::Kind + Sized {
    /// The statement.
    const FINDING: Finding;

    /// The row as the statement gives it, if it is of this kind.
    ///
    /// # Errors
    /// `internal`: it is nothing that the service wrote.
    fn read(row: &Row) -> Result<Option<Self>>;

    /// The row, if the tenant has it.
    fn find(sql: &mut impl Sql, tenant_id: uuid::Uuid, id: uuid::Uuid) -> Result<Option<Self>> {
        let row = sql.query_opt(Self::FINDING.alone, &[&tenant_id, &id])?;
        row.map_or(Ok(None), |row| Self::read(&row))
    }
}
