//! Teams: people and service accounts that get roles on projects together.
//!
//! Guarantees: a slug belongs to one team of the tenant, and stays when the team is renamed. A lock
//! on the team's row serializes the changes of its members. Deleting a team deletes its memberships
//! and grants in the same transaction.
//!
//! Locks are taken in one order: project, team, user.

use super::page::Request;
use super::tenants::Tenant;
use super::{Columns, Find, Finding, FromRow, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, Kind, Listing, May, Scope};
use crate::{find_sql, from_row, list_sql, sql};
use postgres::Row;
use postgres::error::SqlState;
use time::OffsetDateTime;
use uuid::Uuid;

/// A team.
#[derive(Debug, Clone)]
pub struct Team {
    /// Its id.
    pub team_id: Uuid,
    /// Its name.
    pub name: String,
    /// Its name in addresses; unique in the tenant.
    pub slug: String,
    /// What it is for.
    pub description: Option<String>,
    /// Who made it.
    pub created_by: Uuid,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When its name or description was last changed.
    pub updated_at: OffsetDateTime,
}

/// A team to make.
#[derive(Debug)]
pub struct New<'a> {
    /// Its id.
    pub team_id: Uuid,
    /// See [`Team`].
    pub name: &'a str,
    /// See [`Team`].
    pub slug: &'a str,
    /// See [`Team`].
    pub description: Option<&'a str>,
}

impl Kind for Team {
    const NAME: &'static str = "team";
    fn id(&self) -> Uuid {
        self.team_id
    }
    fn scope(&self) -> Scope {
        Scope::Itself
    }
}

impl Find for Team {
    const FINDING: Finding = find_sql!("teams/find", "team", "team_id");
    fn read(row: &Row) -> Result<Option<Self>> {
        Self::from_row(row).map(Some)
    }
}

from_row!(Team {
    team_id,
    name,
    slug,
    description,
    created_by,
    created_at,
    updated_at
});

/// Makes a team; its creator becomes its admin.
///
/// # Errors
/// `already-exists`: the tenant has a team of this slug. `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    creator: &Caller,
    new: &New<'_>,
    now: OffsetDateTime,
) -> Result<Team> {
    let inserted = tx.query_one(
        sql!("teams/insert"),
        &[
            &may.tenant_id(),
            &new.team_id,
            &new.name,
            &new.slug,
            &new.description,
            &creator.user_id,
            &now,
        ],
    );
    let row = on_violation(inserted, &SqlState::UNIQUE_VIOLATION, || {
        Error::new(
            Code::AlreadyExists,
            format!(
                "The tenant has a team with the slug {} already. Choose another slug.",
                new.slug
            ),
        )
    })?;
    Team::from_row(&row)
}

/// Changes its name or description; what is none stays.
///
/// # Errors
/// `not-found`: it was deleted meanwhile. `database-unavailable`.
pub fn change(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Team>,
    name: Option<&str>,
    description: Option<&str>,
    now: OffsetDateTime,
) -> Result<Team> {
    let (tenant_id, team_id) = (may.tenant_id(), may.object_id());
    tx.fetch_optional(
        sql!("teams/update"),
        &[&tenant_id, &team_id, &name, &description, &now],
    )?
    .ok_or_else(|| Error::not_found(Team::NAME, team_id))
}

/// Deletes it with its memberships and grants, and gives the projects that it had a role on.
///
/// # Errors
/// `not-found`: it was deleted meanwhile. `database-unavailable`.
pub fn delete(tx: &mut Tx<'_>, may: &impl May<Admin, Team>) -> Result<Vec<Uuid>> {
    let (tenant_id, team_id) = (may.tenant_id(), may.object_id());
    // Nobody is added to it, and it is granted nothing, from here on.
    held(tx, sql!("teams/lock_whole"), tenant_id, team_id)?;
    let projects = tx.query(sql!("team_grants/delete_team"), &[&tenant_id, &team_id])?;
    tx.execute(sql!("teams/delete"), &[&tenant_id, &team_id])?;
    projects.iter().map(Columns::only).collect()
}

/// A page of the teams that the caller may read; a key's limit to a project takes no team away, as
/// it takes none from reading one.
pub fn list(sql: &mut impl Sql, listing: &Listing<Team>, page: &Request) -> Result<Vec<Team>> {
    let tenant_id = listing.caller().tenant_id;
    let rows = match listing.reader() {
        Some(user_id) => {
            let statement = list_sql!("teams/list_reader").by(page.order);
            sql.query(
                statement,
                &[&tenant_id, &user_id, &page.after, &page.rows()],
            )?
        }
        None => {
            let statement = list_sql!("teams/list").by(page.order);
            sql.query(statement, &[&tenant_id, &page.after, &page.rows()])?
        }
    };
    rows.iter().map(Team::from_row).collect()
}

/// Makes the changes of who is in a team come one after another.
///
/// # Errors
/// `not-found`: it was deleted meanwhile. `database-unavailable`.
pub(super) fn lock(tx: &mut Tx<'_>, tenant_id: Uuid, team_id: Uuid) -> Result<()> {
    held(tx, sql!("teams/lock"), tenant_id, team_id)
}

/// As [`lock`], for several, in the order of their ids; gives those that stand.
pub(super) fn lock_many(tx: &mut Tx<'_>, tenant_id: Uuid, teams: &[Uuid]) -> Result<Vec<Uuid>> {
    let rows = tx.query(sql!("teams/lock_many"), &[&tenant_id, &teams])?;
    rows.iter().map(Columns::only).collect()
}

/// Keeps a team from being deleted until the transaction ends.
///
/// # Errors
/// `not-found`: it was deleted meanwhile. `database-unavailable`.
pub(super) fn keep(tx: &mut Tx<'_>, tenant_id: Uuid, team_id: Uuid) -> Result<()> {
    held(tx, sql!("teams/lock_key"), tenant_id, team_id)
}

fn held(tx: &mut Tx<'_>, lock: &'static str, tenant_id: Uuid, team_id: Uuid) -> Result<()> {
    tx.query_opt(lock, &[&tenant_id, &team_id])?
        .map(|_| ())
        .ok_or_else(|| Error::not_found(Team::NAME, team_id))
}
