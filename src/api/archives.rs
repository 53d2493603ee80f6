//! Archiving projects, agents and flows, and bringing them back.
//!
//! What is archived stays as it is and can be read: lists leave it out, and nothing new begins with it.
//!
//! Not here: what is refused meanwhile (`store::projects`, `store::agents`, `store::flows`).

use super::{agents, flows, projects};
use crate::error::Result;
use crate::http::context::Cx;
use crate::http::input::Nothing;
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::proof::{Admin, Authorized};
use crate::store::agents::{self as stored_agents, Agent};
use crate::store::flows::{self as stored_flows, Flow};
use crate::store::projects::{self as stored_projects, Project};

pub(super) fn routes() -> Vec<Route> {
    use Method::Post;
    vec![
        route(
            Post,
            "/v1/projects/{projectId}/archive",
            "projects.archive",
            "Archive a project: lists leave it and its agents out, nothing new is made or started in it; runs under way go on",
            archive_project,
        ),
        route(
            Post,
            "/v1/projects/{projectId}/unarchive",
            "projects.unarchive",
            "Bring an archived project back",
            unarchive_project,
        ),
        route(
            Post,
            "/v1/agents/{agentId}/archive",
            "agents.archive",
            "Archive an agent: lists leave it out, it starts nothing and gets no versions; runs under way go on",
            archive_agent,
        ),
        route(
            Post,
            "/v1/agents/{agentId}/unarchive",
            "agents.unarchive",
            "Bring an archived agent back",
            unarchive_agent,
        ),
        route(
            Post,
            "/v1/flows/{id}/archive",
            "flows.archive",
            "Archive a flow: lists leave it out, it starts nothing and gets no versions; runs under way go on",
            archive_flow,
        ),
        route(
            Post,
            "/v1/flows/{id}/unarchive",
            "flows.unarchive",
            "Bring an archived flow back",
            unarchive_flow,
        ),
    ]
}

type AdminOf<K> = Authorized<K, Admin>;

fn archive_project(
    cx: &Cx<'_>,
    project: AdminOf<Project>,
    _: Nothing,
) -> Result<Found<projects::View>> {
    set_project(cx, &project, true)
}

fn unarchive_project(
    cx: &Cx<'_>,
    project: AdminOf<Project>,
    _: Nothing,
) -> Result<Found<projects::View>> {
    set_project(cx, &project, false)
}

fn set_project(
    cx: &Cx<'_>,
    project: &AdminOf<Project>,
    is_archived: bool,
) -> Result<Found<projects::View>> {
    let now = cx.now();
    let set = cx.transact(|tx| stored_projects::set_archived(tx, project, is_archived, now))?;
    Ok(Found(set.into()))
}

fn archive_agent(cx: &Cx<'_>, agent: AdminOf<Agent>, _: Nothing) -> Result<Found<agents::View>> {
    set_agent(cx, &agent, true)
}

fn unarchive_agent(cx: &Cx<'_>, agent: AdminOf<Agent>, _: Nothing) -> Result<Found<agents::View>> {
    set_agent(cx, &agent, false)
}

fn set_agent(
    cx: &Cx<'_>,
    agent: &AdminOf<Agent>,
    is_archived: bool,
) -> Result<Found<agents::View>> {
    let now = cx.now();
    let set = cx.transact(|tx| stored_agents::set_archived(tx, agent, is_archived, now))?;
    Ok(Found(set.into()))
}

fn archive_flow(cx: &Cx<'_>, flow: AdminOf<Flow>, _: Nothing) -> Result<Found<flows::View>> {
    set_flow(cx, &flow, true)
}

fn unarchive_flow(cx: &Cx<'_>, flow: AdminOf<Flow>, _: Nothing) -> Result<Found<flows::View>> {
    set_flow(cx, &flow, false)
}

fn set_flow(cx: &Cx<'_>, flow: &AdminOf<Flow>, is_archived: bool) -> Result<Found<flows::View>> {
    let now = cx.now();
    let set = cx.transact(|tx| stored_flows::set_archived(tx, flow, is_archived, now))?;
    Ok(Found(set.into()))
}
