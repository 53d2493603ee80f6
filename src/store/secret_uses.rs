//! Uses of secrets: where a secret may be sent, by name, for one project or for every project of the tenant.
//!
//! A use never changes; it is deleted, and another one is created.
//!
//! Not here: who may create one (`api::secret_uses`, `api::tools`), and the check of each call (`tools`).

use super::page::Request;
use super::tenants::{self, Tenant};
use super::{Columns, Find, Finding, FromRow, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, Kind, May, Scope};
use crate::{find_sql, from_row, list_sql, sql};
use postgres::error::SqlState;
use postgres::{Client, Row};
use time::OffsetDateTime;
use uuid::Uuid;

/// Uses of a tenant at most.
const USES_MOST: i64 = 10_000;

/// A use.
#[derive(Debug, Clone)]
pub struct SecretUse {
    /// Its id.
    pub secret_use_id: Uuid,
    /// The secret's name. The environment decides the value.
    pub name: String,
    /// For this project alone; none: for every project.
    pub project_id: Option<Uuid>,
    /// Where it may be sent, such as `origin:https://api.example.com`.
    pub target: String,
    /// Who created it.
    pub created_by: Uuid,
    /// When it was created.
    pub created_at: OffsetDateTime,
}

/// A use to create.
#[derive(Debug)]
pub struct New<'a> {
    /// See [`SecretUse`].
    pub secret_use_id: Uuid,
    /// See [`SecretUse`].
    pub name: &'a str,
    /// See [`SecretUse`].
    pub project_id: Option<Uuid>,
    /// See [`SecretUse`].
    pub target: &'a str,
}

impl Kind for SecretUse {
    const NAME: &'static str = "secret-use";
    fn id(&self) -> Uuid {
        self.secret_use_id
    }
    fn scope(&self) -> Scope {
        Scope::OnTenant
    }
}

impl Find for SecretUse {
    const FINDING: Finding = find_sql!("secret_uses/find");
    fn read(row: &Row) -> Result<Option<Self>> {
        Self::from_row(row).map(Some)
    }
}

from_row!(SecretUse {
    secret_use_id,
    name,
    project_id,
    target,
    created_by,
    created_at
});

/// The target of what is called at an origin.
pub fn of_origin(origin: &str) -> String {
    format!("origin:{origin}")
}

/// Creates a use. None: it stands already.
///
/// # Errors
/// `conflict`: the tenant has [`USES_MOST`]. `invalid-body`: the project is not there. `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    creator: &Caller,
    new: &New<'_>,
    now: OffsetDateTime,
) -> Result<Option<SecretUse>> {
    let tenant_id = may.tenant_id();
    // One at a time, so that the bound holds.
    tenants::lock(tx, tenant_id)?;
    let count = tx.query_one(sql!("secret_uses/count"), &[&tenant_id])?;
    if count.only::<i64>()? >= USES_MOST {
        let message = format!("A tenant has {USES_MOST} uses of secrets at most. Delete one.");
        return Err(Error::new(Code::Conflict, message).detail("most", USES_MOST));
    }
    let inserted = tx.query_opt(
        sql!("secret_uses/insert"),
        &[
            &tenant_id,
            &new.secret_use_id,
            &new.name,
            &new.project_id,
            &new.target,
            &creator.user_id,
            &now,
        ],
    );
    let row = on_violation(inserted, &SqlState::FOREIGN_KEY_VIOLATION, || {
        let id = new.project_id.unwrap_or_default();
        Error::new(
            Code::InvalidBody,
            format!("The body's $.projectId: there is no project {id} here."),
        )
        .detail("path", "$.projectId")
        .detail("expected", "a project of the tenant")
    })?;
    row.as_ref().map(SecretUse::from_row).transpose()
}

/// Which of these names may not be sent to the target from the project.
pub fn lacking(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    project_id: Uuid,
    target: &str,
    names: &[&str],
) -> Result<Vec<String>> {
    let rows = sql.query(
        sql!("secret_uses/lacking"),
        &[&tenant_id, &project_id, &target, &names],
    )?;
    rows.iter().map(Columns::only).collect()
}

/// A page of the tenant's uses, of one name if given.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Admin, Tenant>,
    name: Option<&str>,
    page: &Request,
) -> Result<Vec<SecretUse>> {
    let statement = list_sql!("secret_uses/list").by(page.order);
    sql.fetch_all(
        statement,
        &[&may.tenant_id(), &name, &page.after, &page.rows()],
    )
}

/// Deletes it.
pub fn delete(tx: &mut Tx<'_>, may: &impl May<Admin, SecretUse>) -> Result<()> {
    tx.execute(
        sql!("secret_uses/delete"),
        &[&may.tenant_id(), &may.object_id()],
    )?;
    Ok(())
}

/// A use as the operator is told of it.
#[derive(Debug)]
pub struct OfOperator {
    /// Its tenant.
    pub tenant_id: Uuid,
    /// See [`SecretUse`].
    pub name: String,
    /// See [`SecretUse`].
    pub target: String,
    /// The database has a secret of this name under the environment that was asked for.
    pub is_stored: bool,
}

from_row!(OfOperator {
    tenant_id,
    name,
    target,
    is_stored
});

/// The newest uses of all tenants: for the operator. The schema is the program's.
pub fn of_operator(
    client: &mut Client,
    environment: Option<&str>,
    most: i64,
) -> Result<Vec<OfOperator>> {
    let rows = client.query(sql!("secret_uses/of_operator"), &[&environment, &most])?;
    rows.iter().map(OfOperator::from_row).collect()
}

/// What a tool needs.
#[derive(Debug)]
pub struct Needed {
    /// The tool's tenant.
    pub tenant_id: Uuid,
    /// Its project.
    pub project_id: Uuid,
    /// The secret's name.
    pub name: String,
    /// Where it is sent.
    pub target: String,
}

/// Which of these have no use, by their places: for the operator. The schema is the program's.
pub fn lacking_of_many(client: &mut Client, needed: &[Needed]) -> Result<Vec<usize>> {
    let tenants: Vec<Uuid> = needed.iter().map(|one| one.tenant_id).collect();
    let projects: Vec<Uuid> = needed.iter().map(|one| one.project_id).collect();
    let names: Vec<&str> = needed.iter().map(|one| one.name.as_str()).collect();
    let targets: Vec<&str> = needed.iter().map(|one| one.target.as_str()).collect();
    let rows = client.query(
        sql!("secret_uses/lacking_of_many"),
        &[&tenants, &projects, &names, &targets],
    )?;
    let place = |row: &Row| {
        let place: i64 = row.only()?;
        usize::try_from(place - 1).map_err(Error::internal)
    };
    rows.iter().map(place).collect()
}
