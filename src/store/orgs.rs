//! Orgs and their admins, who are admins of every project of the org (section 5.4).

use super::page::Request;
use super::principals::{self, Named, person};
use super::tenants::Tenant;
use super::{Find, Finding, FromRow, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Kind, Listing, May, Scope};
use crate::{find_sql, from_row, list_sql, sql};
use postgres::Row;
use postgres::error::SqlState;
use time::OffsetDateTime;
use uuid::Uuid;

/// An org.
#[derive(Debug, Clone)]
pub struct Org {
    /// Its id.
    pub org_id: Uuid,
    /// Its name, which no other org of the tenant has.
    pub name: String,
    /// Who made it.
    pub created_by: Uuid,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
}

impl Kind for Org {
    const NAME: &'static str = "org";
    fn id(&self) -> Uuid {
        self.org_id
    }
    fn scope(&self) -> Scope {
        Scope::Itself
    }
}

impl Find for Org {
    const FINDING: Finding = find_sql!("orgs/find", "org", "org_id");
    fn read(row: &Row) -> Result<Option<Self>> {
        Self::from_row(row).map(Some)
    }
}

from_row!(Org {
    org_id,
    name,
    created_by,
    created_at,
    updated_at
});

fn name_taken() -> Error {
    Error::new(
        Code::AlreadyExists,
        "The tenant has an org with this name already. Choose another name.",
    )
}

/// Makes an org.
///
/// # Errors
/// `already-exists`, `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    creator: Uuid,
    org_id: Uuid,
    name: &str,
    now: OffsetDateTime,
) -> Result<Org> {
    tx.fetch_optional(
        sql!("orgs/insert"),
        &[&may.tenant_id(), &org_id, &name, &creator, &now],
    )?
    .ok_or_else(name_taken)
}

/// Renames it.
///
/// # Errors
/// `already-exists`, `database-unavailable`.
pub fn rename(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Org>,
    name: &str,
    now: OffsetDateTime,
) -> Result<Org> {
    let renamed = tx.fetch_one(
        sql!("orgs/rename"),
        &[&may.tenant_id(), &may.object_id(), &name, &now],
    );
    on_violation(renamed, &SqlState::UNIQUE_VIOLATION, name_taken)
}

/// A page of the orgs that the caller may read: a tenant admin reads all, an org's admin
/// that one. A key's limit to a project takes none away, as it takes none from reading one.
pub fn list(sql: &mut impl Sql, listing: &Listing<Org>, page: &Request) -> Result<Vec<Org>> {
    let statement = list_sql!("orgs/list").by(page.order);
    sql.fetch_all(
        statement,
        &[
            &listing.caller().tenant_id,
            &listing.reader(),
            &page.after,
            &page.rows(),
        ],
    )
}

/// An admin of an org.
#[derive(Debug, Clone)]
pub struct OrgAdmin {
    /// The person.
    pub user_id: Uuid,
    /// The person's email.
    pub email: Option<String>,
    /// What the person is called.
    pub display_name: String,
    /// Since when.
    pub joined_at: OffsetDateTime,
}

from_row!(OrgAdmin {
    user_id,
    email,
    display_name,
    joined_at
});

/// Makes a person an admin of the org. Whoever is one already stays so.
///
/// # Errors
/// `not-found`; `conflict`: the person was deactivated; `database-unavailable`.
pub fn insert_admin(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Org>,
    named: &Named,
    now: OffsetDateTime,
) -> Result<OrgAdmin> {
    let (tenant_id, org_id) = (may.tenant_id(), may.object_id());
    let user_id = person(tx, tenant_id, named)?;
    tx.execute(
        sql!("orgs/insert_admin"),
        &[&tenant_id, &org_id, &user_id, &now],
    )?;
    tx.fetch_one(sql!("orgs/find_admin"), &[&tenant_id, &org_id, &user_id])
}

/// A page of the org's admins.
pub fn list_admins(
    sql: &mut impl Sql,
    may: &impl May<Admin, Org>,
    page: &Request,
) -> Result<Vec<OrgAdmin>> {
    let statement = list_sql!("orgs/list_admins").by(page.order);
    sql.fetch_all(
        statement,
        &[
            &may.tenant_id(),
            &may.object_id(),
            &page.after,
            &page.rows(),
        ],
    )
}

/// Takes the org from an admin.
///
/// # Errors
/// `not-found`: no such user; one who is no admin of it is as wanted. `database-unavailable`.
pub fn delete_admin(tx: &mut Tx<'_>, may: &impl May<Admin, Org>, user_id: Uuid) -> Result<()> {
    let touched = tx.execute(
        sql!("orgs/delete_admin"),
        &[&may.tenant_id(), &may.object_id(), &user_id],
    )?;
    match touched {
        0 => principals::stands(tx, may.tenant_id(), user_id),
        _ => Ok(()),
    }
}
