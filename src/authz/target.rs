//! On what access is checked: how the model, a record and a denial name it.

use super::fga::Tuple;
use super::permissions::Asked;
use super::roles::ObjectKind;
use crate::proof::{Kind, Scope};
use crate::store::authz::InSync;
use uuid::Uuid;

/// On what access is checked.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// `<kind>:<id>`: what a record and a denial name.
    pub(super) resource: String,
    /// The project that it lies in, or is.
    pub(super) project_id: Option<Uuid>,
    /// It lies in the project: who may do what in it is the project's.
    pub(super) inside: bool,
    pub(super) kind: ObjectKind,
    /// The object that belongs to the tenant itself, on which the check is made: a record says for
    /// which one.
    pub(super) about: Option<String>,
    pub(super) run_id: Option<Uuid>,
}

impl Target {
    pub(super) fn tenant(tenant_id: Uuid) -> Self {
        Self {
            resource: format!("tenant:{tenant_id}"),
            project_id: None,
            inside: false,
            kind: ObjectKind::Tenant,
            about: None,
            run_id: None,
        }
    }

    /// The tenant, for an object of its own.
    pub(super) fn tenant_for(tenant_id: Uuid, kind: &str, id: Uuid) -> Self {
        Self {
            about: Some(format!("{kind}:{id}")),
            ..Self::tenant(tenant_id)
        }
    }

    /// An approval, on which the model is not asked.
    pub(super) fn approval(id: Uuid) -> Self {
        Self {
            resource: format!("approval:{id}"),
            ..Self::tenant(id)
        }
    }

    /// The approvals that a reviewer may see, as a whole: no single one, and not the tenant, which its members may read.
    pub(super) fn approvals() -> Self {
        Self {
            resource: "approval:*".to_owned(),
            ..Self::tenant(Uuid::nil())
        }
    }

    /// `<kind>:<id>`.
    pub(super) fn resource(&self) -> &str {
        &self.resource
    }

    pub(super) fn of<K: Kind>(row: &K, tenant_id: Uuid) -> Self {
        let id = row.id();
        let (project_id, inside) = match row.scope() {
            Scope::OnTenant => return Self::tenant_for(tenant_id, K::NAME, id),
            Scope::Itself => ((K::NAME == "project").then_some(id), false),
            Scope::InProject(project_id) => (Some(project_id), true),
        };
        Self {
            resource: format!("{}:{id}", K::NAME),
            project_id,
            inside,
            // What is not of the model takes the most.
            kind: ObjectKind::named(K::NAME).unwrap_or(ObjectKind::Tenant),
            about: None,
            run_id: (K::NAME == "run").then_some(id),
        }
    }

    /// What a record's sentence names.
    pub(super) fn recorded(&self) -> String {
        match &self.about {
            Some(about) => format!("{}, for {about}", self.resource),
            None => self.resource.clone(),
        }
    }

    pub(super) fn asked(
        &self,
        user: Uuid,
        relation: &'static str,
        in_sync: Option<InSync>,
    ) -> Asked {
        let project = self.project_id.filter(|_| self.inside);
        Asked {
            user,
            relation,
            object: self.resource.clone(),
            contextual: project.map(|project_id| Tuple {
                user: format!("project:{project_id}"),
                relation: "project".to_owned(),
                object: self.resource.clone(),
            }),
            project_id: self.project_id,
            in_sync,
        }
    }
}
