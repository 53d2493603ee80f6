//! The members of teams.
//!
//! Guarantees: a lock on the team's row serializes the changes of its memberships, so each answers
//! as if it had been alone. What the groups of an identity provider gave, they alone take away, and they touch nothing that
//! somebody gave.

use super::page::Request;
use super::principals::{self, Named, PrincipalKind};
use super::teams::{self, Team};
use super::{Columns, Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, May};
use crate::{from_row, list_sql, sql, texts};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    // Specification, section 5.2.
    /// A role in a team.
    #[schemars(rename = "TeamRole")]
    Role {
        /// Decides who is in it.
        Admin = "admin",
        /// Has the roles that the team has.
        Member = "member",
    }
}

/// Somebody's membership of a team.
#[derive(Debug, Clone)]
pub struct TeamMembership {
    /// The team.
    pub team_id: Uuid,
    /// Who.
    pub user_id: Uuid,
    /// What they are.
    pub kind: PrincipalKind,
    /// Their name.
    pub display_name: String,
    /// Their role.
    pub role: Role,
    /// Since when.
    pub joined_at: OffsetDateTime,
    /// The identity provider whose groups gave it; none: somebody did.
    pub source_provider_id: Option<Uuid>,
    /// Since when they can do nothing any more.
    pub deactivated_at: Option<OffsetDateTime>,
}

from_row!(TeamMembership {
    team_id,
    user_id,
    kind,
    display_name,
    role,
    joined_at,
    source_provider_id,
    deactivated_at
});

/// Adds somebody. A member with this role already stays one, as they are; where an identity provider's group gave it, no
/// group takes it away any more.
///
/// # Errors
/// `not-found`: the tenant has no such user, or the team was deleted meanwhile. `conflict`:
/// deactivated. `membership-exists`: a member with the other role. `database-unavailable`.
pub fn add(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Team>,
    named: &Named,
    role: Role,
    now: OffsetDateTime,
) -> Result<TeamMembership> {
    let (tenant_id, team_id) = (may.tenant_id(), may.object_id());
    teams::lock(tx, tenant_id, team_id)?;
    let user_id = principals::active(tx, tenant_id, named)?.user_id;
    if let Some(held) = find(tx, tenant_id, team_id, user_id)? {
        if held.role != role {
            return Err(exists(held.role));
        }
        return match held.source_provider_id {
            Some(_) => put(tx, tenant_id, team_id, user_id, role),
            None => Ok(held),
        };
    }
    tx.execute(
        sql!("team_memberships/insert"),
        &[&tenant_id, &team_id, &user_id, &role, &now],
    )?;
    known(tx, tenant_id, team_id, user_id)
}

/// Gives a member the other role.
///
/// # Errors
/// `not-found`: no membership. `database-unavailable`.
pub fn change(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Team>,
    user_id: Uuid,
    role: Role,
) -> Result<TeamMembership> {
    let (tenant_id, team_id) = (may.tenant_id(), may.object_id());
    teams::lock(tx, tenant_id, team_id)?;
    put(tx, tenant_id, team_id, user_id, role)
}

/// Gives a member the role, by hand from here on.
fn put(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    team_id: Uuid,
    user_id: Uuid,
    role: Role,
) -> Result<TeamMembership> {
    tx.execute(
        sql!("team_memberships/update"),
        &[&tenant_id, &team_id, &user_id, &role],
    )?;
    known(tx, tenant_id, team_id, user_id)
}

/// Removes a member.
///
/// # Errors
/// `not-found`: no such user; one without a membership is as wanted. `database-unavailable`.
pub fn remove(tx: &mut Tx<'_>, may: &impl May<Admin, Team>, user_id: Uuid) -> Result<()> {
    let (tenant_id, team_id) = (may.tenant_id(), may.object_id());
    teams::lock(tx, tenant_id, team_id)?;
    let removed = tx.execute(
        sql!("team_memberships/delete"),
        &[&tenant_id, &team_id, &user_id],
    )?;
    if removed == 0 {
        return principals::stands(tx, tenant_id, user_id);
    }
    Ok(())
}

/// A page of the team's memberships, by their users' ids.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Admin, Team>,
    page: &Request,
) -> Result<Vec<TeamMembership>> {
    let statement = list_sql!("team_memberships/list").by(page.order);
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

/// What a person's groups at a provider ask for: the roles in these teams, and no other membership by this provider.
#[derive(Debug)]
pub struct ByGroups<'a> {
    /// The tenant.
    pub tenant_id: Uuid,
    /// The provider.
    pub identity_provider_id: Uuid,
    /// The roles.
    pub wanted: &'a BTreeMap<Uuid, Role>,
}

impl ByGroups<'_> {
    /// The roles that the user is to get, none where a membership is to end. A membership that somebody gave, or another
    /// provider, stays as it is.
    fn changes(
        &self,
        sql: &mut impl Sql,
        user_id: Option<Uuid>,
    ) -> Result<BTreeMap<Uuid, Option<Role>>> {
        let mut changes: BTreeMap<_, _> = self
            .wanted
            .iter()
            .map(|(team_id, role)| (*team_id, Some(*role)))
            .collect();
        let Some(user_id) = user_id else {
            return Ok(changes);
        };
        let teams: Vec<Uuid> = self.wanted.keys().copied().collect();
        let provider_id = self.identity_provider_id;
        let held = sql.query(
            sql!("team_memberships/held"),
            &[&self.tenant_id, &user_id, &teams, &provider_id],
        )?;
        for row in held {
            let (team_id, role): (Uuid, Role) = (row.column("team_id")?, row.column("role")?);
            let is_ours = row.column::<Option<Uuid>>("source_provider_id")? == Some(provider_id);
            match self.wanted.get(&team_id) {
                None => {
                    changes.insert(team_id, None);
                }
                Some(wanted) if is_ours && *wanted != role => {}
                Some(_) => {
                    changes.remove(&team_id);
                }
            }
        }
        Ok(changes)
    }

    /// Locks the teams whose members are to change, and gives them: before the user's row is locked. Without a user:
    /// somebody who has no membership yet.
    pub fn lock(&self, tx: &mut Tx<'_>, user_id: Option<Uuid>) -> Result<Vec<Uuid>> {
        let teams: Vec<Uuid> = self.changes(tx, user_id)?.into_keys().collect();
        match teams.is_empty() {
            true => Ok(teams),
            false => teams::lock_many(tx, self.tenant_id, &teams),
        }
    }

    /// Makes the changes in the teams that were locked, and gives the teams that changed. What came up since waits for
    /// the next time.
    pub fn follow(
        &self,
        tx: &mut Tx<'_>,
        user_id: Uuid,
        locked: &[Uuid],
        now: OffsetDateTime,
    ) -> Result<Vec<Uuid>> {
        if locked.is_empty() {
            return Ok(Vec::new());
        }
        let mut changed = Vec::new();
        for (team_id, role) in self.changes(tx, Some(user_id))? {
            if !locked.contains(&team_id) {
                continue;
            }
            let (tenant_id, provider_id) = (self.tenant_id, self.identity_provider_id);
            match role {
                Some(role) => tx.execute(
                    sql!("team_memberships/put_of_source"),
                    &[&tenant_id, &team_id, &user_id, &role, &now, &provider_id],
                )?,
                None => tx.execute(
                    sql!("team_memberships/delete_of_source"),
                    &[&tenant_id, &provider_id, &Some(user_id), &vec![team_id]],
                )?,
            };
            changed.push(team_id);
        }
        Ok(changed)
    }
}

/// Ends the memberships that a provider's groups gave, of one user or of all, but not in these teams; gives the teams that
/// changed.
pub(super) fn end_of_source(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    identity_provider_id: Uuid,
    user_id: Option<Uuid>,
    kept: &[Uuid],
) -> Result<Vec<Uuid>> {
    let rows = tx.query(
        sql!("team_memberships/of_source"),
        &[&tenant_id, &identity_provider_id, &user_id, &kept],
    )?;
    let teams: Vec<Uuid> = rows.iter().map(Columns::only).collect::<Result<_>>()?;
    if teams.is_empty() {
        return Ok(teams);
    }
    let teams = teams::lock_many(tx, tenant_id, &teams)?;
    tx.execute(
        sql!("team_memberships/delete_of_source"),
        &[&tenant_id, &identity_provider_id, &user_id, &teams],
    )?;
    Ok(teams)
}

fn find(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    team_id: Uuid,
    user_id: Uuid,
) -> Result<Option<TeamMembership>> {
    sql.fetch_optional(
        sql!("team_memberships/find"),
        &[&tenant_id, &team_id, &user_id],
    )
}

fn known(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    team_id: Uuid,
    user_id: Uuid,
) -> Result<TeamMembership> {
    find(sql, tenant_id, team_id, user_id)?.ok_or_else(|| unknown(user_id))
}

fn unknown(user_id: Uuid) -> Error {
    Error::not_found("membership of user", user_id)
}

fn exists(held: Role) -> Error {
    let role = held.text();
    Error::new(
        Code::MembershipExists,
        format!(
            "The user is in the team with the role {role} already. Change the role of that membership instead."
        ),
    )
    .detail("role", role)
}

/// Whether a user is in any team.
pub fn is_in_any(sql: &mut impl Sql, tenant_id: Uuid, user_id: Uuid) -> Result<bool> {
    sql.query_one(sql!("team_memberships/has_any"), &[&tenant_id, &user_id])?
        .only()
}
