//! `/v1/projects/{projectId}/access`: who has access to a project, and through which roles
//! (sections 2.4 and 4.5).

use super::page_query::FixedOrderQuery;
use crate::error::{Code, Error, Result};
use crate::http::context::Cx;
use crate::http::input::Query;
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Authorized, Write};
use crate::store::page::Page;
use crate::store::principals::PrincipalKind;
use crate::store::project_access::{self, Entry};
use crate::store::project_memberships::Role;
use crate::store::projects::Project;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    vec![
        route(
            Method::Get,
            "/v1/projects/{projectId}/access",
            "projects.access.list", "List who has access to a project, by every way in; owners first, then by role and name",
            list,
        )
        .answers(&[Code::ProjectAccessUnsupported]),
    ]
}

/// Somebody with access to a project.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AccessEntry")]
struct View {
    principal: Principal,
    display_name: String,
    /// A person's email; for the project's admins alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_email: Option<String>,
    /// The highest role that a way in gives.
    role: Role,
    /// Every way in.
    via: Vec<Way>,
}

/// Who it is.
#[derive(Debug, Serialize, JsonSchema)]
struct Principal {
    kind: PrincipalKind,
    id: Uuid,
}

/// A way into a project.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub(super) enum Way {
    /// A role of one's own.
    #[schemars(title = "DirectWay")]
    Direct {
        role: Role,
        /// Since when; absent where no membership stands behind the role.
        // Its schema is spelled out: so its keys keep their order in the published description.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>", extend("format" = "date-time"))]
        joined_at: Option<Timestamp>,
    },
    /// Admin of the tenant.
    #[schemars(title = "TenantAdminWay")]
    TenantAdmin,
    /// Admin of the project's org.
    #[schemars(title = "OrgAdminWay")]
    OrgAdmin,
    /// A role of a team.
    #[schemars(title = "TeamWay")]
    Team {
        team_id: Uuid,
        team_name: String,
        role: Role,
    },
}

impl From<project_access::Way> for Way {
    fn from(way: project_access::Way) -> Self {
        match way {
            project_access::Way::Direct { role, joined_at } => Self::Direct {
                role,
                joined_at: joined_at.map(Into::into),
            },
            project_access::Way::TenantAdmin => Self::TenantAdmin,
            project_access::Way::OrgAdmin => Self::OrgAdmin,
            project_access::Way::Team {
                team_id,
                team_name,
                role,
            } => Self::Team {
                team_id,
                team_name,
                role,
            },
        }
    }
}

fn view(sees_emails: bool, entry: Entry) -> View {
    View {
        role: entry.role(),
        principal: Principal {
            kind: entry.kind,
            id: entry.user_id,
        },
        display_name: entry.display_name,
        primary_email: entry.primary_email.filter(|_| sees_emails),
        via: entry.ways.into_iter().map(Way::from).collect(),
    }
}

fn list(
    cx: &Cx<'_>,
    project: Authorized<Project, Write>,
    Query(query): Query<FixedOrderQuery>,
) -> Result<Found<Page<View>>> {
    if !cx.checker()?.enforces() {
        return Err(Error::new(
            Code::ProjectAccessUnsupported,
            "This deployment has no authorization server: whoever holds a token of the tenant may do anything in it.",
        ));
    }
    let binding = ("access", project.row().project_id);
    let page = query.text_page(&binding)?;
    let mut session = cx.store().session()?;
    let rows = project_access::list(&mut session, &project, &page)?;
    let sees_emails = project_access::administers(&mut session, &project)?;
    let show = |row| view(sees_emails, row);
    Ok(Found(page.page(rows, Entry::key, show)))
}
