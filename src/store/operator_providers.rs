//! The identity providers of the operator's file, in the database.
//!
//! Guarantees: after [`follow`] the rows of a tenant are those of the file, in one transaction; a row that is so already is not
//! written. A provider that the file names no more is retired: its sessions and the memberships that its groups gave end, and
//! its identities stay, should the file name it again.
//!
//! Not here: the file (`config::identity_providers`).

use super::identity_providers::{Group, IdentityProvider, end, put_domains_and_groups};
use super::team_memberships::{self, Role};
use super::{Columns, Sql, Tx, tenants};
use crate::config::identity_providers::{OperatorGroup, OperatorProvider};
use crate::error::Result;
use crate::ids::Id;
use crate::sql;
use std::collections::HashMap;
use time::OffsetDateTime;
use uuid::Uuid;

/// The tenants that stand, of those that are named and those that have providers of a file.
pub fn tenants(sql: &mut impl Sql, named: &[Uuid]) -> Result<Vec<Uuid>> {
    let rows = sql.query(sql!("operator_providers/tenants"), &[&named])?;
    rows.iter().map(Columns::only).collect()
}

/// What followed from the file.
#[derive(Debug, Default)]
pub struct Followed {
    /// Teams whose members are fewer.
    pub teams: Vec<Uuid>,
    /// Slugs that the file names and no team has.
    pub unknown_teams: Vec<String>,
    /// Something was written.
    pub has_changed: bool,
}

/// Makes the operator's providers of a tenant those of the file.
pub fn follow(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    file: &[&OperatorProvider],
    now: OffsetDateTime,
) -> Result<Followed> {
    let mut followed = Followed::default();
    // Another replica may start at this moment.
    tenants::lock(tx, tenant_id)?;
    let teams = teams(tx, tenant_id, file, &mut followed.unknown_teams)?;
    let held: Vec<IdentityProvider> =
        tx.fetch_all(sql!("operator_providers/held"), &[&tenant_id])?;
    let is_same = file.len() == held.len()
        && file.iter().all(|one| {
            let held = held.iter().find(|held| held.identity_provider_id == one.id);
            held.is_some_and(|held| is_same(one, &groups(one, &teams), held))
        });
    if is_same {
        return Ok(followed);
    }
    followed.has_changed = true;
    tx.execute(sql!("operator_providers/clear"), &[&tenant_id])?;
    let is_named =
        |held: &&IdentityProvider| file.iter().any(|one| one.id == held.identity_provider_id);
    for gone in held.iter().filter(|held| !is_named(held)) {
        let id = gone.identity_provider_id;
        followed.teams.extend(end(tx, tenant_id, id, now)?.teams);
        tx.execute(sql!("operator_providers/retire"), &[&tenant_id, &id, &now])?;
    }
    for one in file {
        tx.execute(
            sql!("operator_providers/put"),
            &[
                &tenant_id,
                &one.id,
                &one.name,
                &one.issuer,
                &one.client_id,
                &one.scopes,
                &one.email_trust,
                &one.creates_people,
                &one.groups_claim,
                &now,
            ],
        )?;
        let groups = groups(one, &teams);
        put_domains_and_groups(tx, tenant_id, one.id, &one.domains, &groups)?;
        let kept: Vec<Uuid> = groups.iter().map(|group| group.team_id.0).collect();
        let fewer = team_memberships::end_of_source(tx, tenant_id, one.id, None, &kept)?;
        followed.teams.extend(fewer);
    }
    Ok(followed)
}

/// The teams that the file names, by slug.
fn teams(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    file: &[&OperatorProvider],
    unknown: &mut Vec<String>,
) -> Result<HashMap<String, Uuid>> {
    let groups = file.iter().flat_map(|one| &one.groups);
    let mut slugs: Vec<&str> = groups.map(|group| group.team.as_str()).collect();
    slugs.sort_unstable();
    slugs.dedup();
    let rows = tx.query(sql!("operator_providers/teams"), &[&tenant_id, &slugs])?;
    let mut teams = HashMap::new();
    for row in rows {
        teams.insert(row.column("slug")?, row.column("team_id")?);
    }
    let missing = slugs.into_iter().filter(|slug| !teams.contains_key(*slug));
    unknown.extend(missing.map(str::to_owned));
    Ok(teams)
}

/// The groups whose teams stand.
fn groups(one: &OperatorProvider, teams: &HashMap<String, Uuid>) -> Vec<Group> {
    let of_row = |row: &OperatorGroup| {
        Some(Group {
            group: row.group.clone(),
            team_id: Id(*teams.get(&row.team)?),
            role: match row.is_admin {
                true => Role::Admin,
                false => Role::Member,
            },
        })
    };
    one.groups.iter().filter_map(of_row).collect()
}

fn is_same(one: &OperatorProvider, groups: &[Group], held: &IdentityProvider) -> bool {
    let mut domains = one.domains.clone();
    domains.sort_unstable();
    let mut held_domains = held.domains.clone();
    held_domains.sort_unstable();
    let has_group = |group: &Group| held.groups.contains(group);
    one.name == held.name
        && one.scopes == held.scopes
        && one.email_trust == held.email_trust
        && one.creates_people == held.creates_people
        && one.groups_claim == held.groups_claim
        && domains == held_domains
        && groups.len() == held.groups.len()
        && groups.iter().all(has_group)
}
