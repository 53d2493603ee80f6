//! What readers of hints get, and what they may read at this moment.
//!
//! Not here: who may follow which kinds (`authz`), and what happened (`events`, `approvals::log`).

use super::reviewers::OfTenant;
use super::{Columns, Sql};
use crate::error::Result;
use crate::{sql, texts};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

texts! {
    /// What kinds of objects hints are about.
    ChangeKind {
        /// A run began, went on or ended.
        Run = "run",
        /// An approval was opened, assigned or closed.
        Approval = "approval",
    }
}

/// Something that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The tenant.
    pub tenant_id: Uuid,
    /// What kind of object.
    pub kind: ChangeKind,
    /// The object.
    pub id: Uuid,
    /// Its project.
    pub project_id: Uuid,
    /// Of an approval: the reviewer role that may see it.
    pub required_role: Option<String>,
}

/// What some people may read at this moment.
#[derive(Debug, Default)]
pub struct Rights {
    admins: HashSet<OfTenant>,
    ways: HashSet<(OfTenant, Uuid)>,
    roles: HashMap<OfTenant, Vec<String>>,
}

impl Rights {
    /// The person is an admin of the tenant.
    pub fn is_admin(&self, person: OfTenant) -> bool {
        self.admins.contains(&person)
    }

    /// The person has a way into the project that is not a tenant admin's.
    pub fn has_way(&self, person: OfTenant, project_id: Uuid) -> bool {
        self.ways.contains(&(person, project_id))
    }

    /// The person has the reviewer role.
    pub fn has_role(&self, person: OfTenant, role: &str) -> bool {
        let roles = self.roles.get(&person);
        roles.is_some_and(|roles| roles.iter().any(|held| held == role))
    }
}

/// The runs of these tenants among these: a hint has the id alone.
pub fn runs(sql: &mut impl Sql, tenant_ids: &[Uuid], run_ids: &[Uuid]) -> Result<Vec<Change>> {
    let rows = sql.query(sql!("changes/runs"), &[&tenant_ids, &run_ids])?;
    rows.iter()
        .map(|row| {
            Ok(Change {
                tenant_id: row.column("tenant_id")?,
                kind: ChangeKind::Run,
                id: row.column("id")?,
                project_id: row.column("project_id")?,
                required_role: None,
            })
        })
        .collect()
}

/// What these people may read of what changed: the reviewer roles for what takes one, and the ways into the projects of the rest.
pub fn rights(sql: &mut impl Sql, people: &[OfTenant], changed: &[Change]) -> Result<Rights> {
    let (tenant_ids, user_ids): (Vec<Uuid>, Vec<Uuid>) = people.iter().copied().unzip();
    let mut rights = Rights::default();
    let (for_reviewers, for_readers): (Vec<&Change>, Vec<&Change>) = changed
        .iter()
        .partition(|change| change.required_role.is_some());
    if !people.is_empty() && !for_reviewers.is_empty() {
        rights.roles = super::reviewers::roles_of_many(sql, people)?;
    }
    if people.is_empty() || for_readers.is_empty() {
        return Ok(rights);
    }
    let projects: HashSet<Uuid> = for_readers.iter().map(|change| change.project_id).collect();
    let projects: Vec<Uuid> = projects.into_iter().collect();
    for row in sql.query(sql!("changes/admins"), &[&tenant_ids, &user_ids])? {
        let person = (row.column("tenant_id")?, row.column("user_id")?);
        rights.admins.insert(person);
    }
    let ways = sql.query(sql!("changes/ways"), &[&tenant_ids, &user_ids, &projects])?;
    for row in ways {
        let person = (row.column("tenant_id")?, row.column("user_id")?);
        rights.ways.insert((person, row.column("project_id")?));
    }
    Ok(rights)
}
