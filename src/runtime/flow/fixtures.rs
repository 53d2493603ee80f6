//! Fixtures of a dry run: what steps answer that are not performed, by the JSON pointers of their tasks.
//!
//! A path stands for a task of the flow that was started. That of a flow which runs below it has the flow's id before it:
//! `billing.refund/do/0/pay`.

use super::definitions::{Definitions, Known};
use crate::error::Result;
use crate::runtime::journal::decision::LEVELS_MOST;
use crate::store::Sql;
use crate::store::flow_parts;
use crate::store::flow_versions::UseKind;
use crate::store::turns::{Target, Tool};
use serde_json::{Map, Value};
use std::collections::HashSet;
use uuid::Uuid;

/// Those of one flow, by the paths of its tasks. `root`: the flow that was started.
pub(super) fn of_flow(
    fixtures: &Map<String, Value>,
    root: &str,
    flow_id: &str,
) -> Map<String, Value> {
    let own = fixtures.iter().filter_map(|(key, value)| {
        let (of, path) = parts(key, root);
        (of == flow_id).then(|| (path.to_owned(), value.clone()))
    });
    own.collect()
}

/// Why fixtures do not suit a flow, as a sentence.
pub(in crate::runtime) fn fault(
    sql: &mut impl Sql,
    definitions: &Definitions,
    project: (Uuid, Uuid),
    (flow_id, version): (&str, &str),
    fixtures: &Map<String, Value>,
) -> Result<Option<String>> {
    let mut missing: Vec<(&str, &str)> = fixtures.keys().map(|key| parts(key, flow_id)).collect();
    let mut next = vec![Part::Flow(flow_id.to_owned(), version.to_owned())];
    let mut met: HashSet<Part> = next.iter().cloned().collect();
    for _ in 0..LEVELS_MOST {
        let mut below = Vec::new();
        for part in next {
            if missing.is_empty() {
                return Ok(None);
            }
            match part {
                Part::Flow(flow_id, version) => {
                    let known = definitions.of(sql, project, (&flow_id, &version))?;
                    let Some(known) = known else { continue };
                    let steps: HashSet<&str> = known.definition.steps().into_iter().collect();
                    missing.retain(|(of, path)| *of != flow_id || !steps.contains(path));
                    below.extend(below_flow(sql, project.0, &known)?);
                }
                Part::Agent(id, version) => {
                    let tools = flow_parts::agent_tools(sql, project.0, id, &version)?;
                    below.extend(tools.into_iter().filter_map(Part::of_tool));
                }
            }
        }
        below.retain(|part| met.insert(part.clone()));
        next = below;
    }
    let is_met = |of: &str| {
        let mut flows = met.iter();
        flows.any(|part| matches!(part, Part::Flow(flow_id, _) if flow_id == of))
    };
    Ok(missing.first().map(|(of, path)| match is_met(of) {
        true => format!(
            "the flow {of} has no step at {path:?}. Steps are calls, and runs of flows; name one by the JSON pointer of its task"
        ),
        false => format!("the flow {flow_id} does not run the flow {of:?}"),
    }))
}

/// A version of what runs in a tree of runs.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Part {
    Flow(String, String),
    Agent(Uuid, String),
}

impl Part {
    /// What calls of the tool run.
    fn of_tool(tool: Tool) -> Option<Self> {
        match tool.target {
            Target::Http(_) => None,
            Target::Agent { runs } => runs.map(|runs| Self::Agent(runs.id, runs.version)),
            Target::Flow { runs } => runs.map(|runs| Self::Flow(runs.flow_id, runs.version)),
        }
    }
}

/// What a version of a flow runs, by its tools, too.
fn below_flow(sql: &mut impl Sql, tenant_id: Uuid, known: &Known) -> Result<Vec<Part>> {
    let mut below = Vec::new();
    let uses = known.uses(UseKind::Flow);
    if !uses.is_empty() {
        let flows = flow_parts::flows(sql, tenant_id, &uses)?.into_iter();
        below.extend(flows.map(|flow| Part::Flow(flow.flow_id, flow.version)));
    }
    let uses = known.uses(UseKind::Agent);
    if !uses.is_empty() {
        let agents = flow_parts::agents(sql, tenant_id, &uses)?.into_iter();
        below.extend(agents.map(|agent| Part::Agent(agent.agent_id, agent.version)));
    }
    let uses = known.uses(UseKind::Tool);
    if !uses.is_empty() {
        let tools = flow_parts::tools(sql, tenant_id, &uses)?;
        below.extend(tools.into_iter().filter_map(Part::of_tool));
    }
    Ok(below)
}

/// The flow and the path of a key.
fn parts<'a>(key: &'a str, root: &'a str) -> (&'a str, &'a str) {
    match key.find('/') {
        Some(0) | None => (root, key),
        Some(at) => key.split_at(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_names_a_task_of_the_flow_that_was_started_or_of_another() {
        let fixtures = json!({"/do/0/a": 1, "x.other/do/0/a": 2, "x.root/do/1/b": 3});
        let fixtures = fixtures.as_object().unwrap();
        let of = |flow_id| Value::Object(of_flow(fixtures, "x.root", flow_id));
        assert_eq!(of("x.root"), json!({"/do/0/a": 1, "/do/1/b": 3}));
        assert_eq!(of("x.other"), json!({"/do/0/a": 2}));
        assert_eq!(of("x"), json!({}));
    }
}
