//! Fixtures of a dry run: what steps answer that are not performed, by the JSON pointers of their tasks.
//!
//! A path stands for a task of the flow that was started. That of a flow which runs below it has the flow's id before it:
//! `billing.refund/do/0/pay`.

use super::definitions::{Definitions, Known};
use super::next::FLOWS_MOST;
use crate::error::Result;
use crate::store::Sql;
use crate::store::flow_parts;
use crate::store::flow_versions::UseKind;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;

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
///
/// # Errors
/// The database's.
pub(in crate::runtime) fn fault(
    sql: &mut impl Sql,
    definitions: &Definitions,
    project: (uuid::Uuid, uuid::Uuid),
    (flow_id, version): (&str, &str),
    fixtures: &Map<String, Value>,
) -> Result<Option<String>> {
    let mut missing: Vec<(&str, &str)> = fixtures.keys().map(|key| parts(key, flow_id)).collect();
    let mut next = vec![(flow_id.to_owned(), version.to_owned())];
    let mut met: HashSet<(String, String)> = next.iter().cloned().collect();
    for _ in 0..FLOWS_MOST {
        let mut below = Vec::new();
        for (flow_id, version) in next {
            if missing.is_empty() {
                return Ok(None);
            }
            let Some(known) = definitions.of(sql, project, (&flow_id, &version))? else {
                continue;
            };
            let steps: HashSet<&str> = known.definition.steps().into_iter().collect();
            missing.retain(|(of, path)| *of != flow_id || !steps.contains(path));
            below.extend(runs_of(sql, project.0, &known)?);
        }
        below.retain(|version| met.insert(version.clone()));
        next = below;
    }
    Ok(missing.first().map(|(of, path)| match met.iter().any(|(met, _)| met == of) {
        true => format!(
            "the flow {of} has no step at {path:?}. Steps are calls, and runs of flows; name one by the JSON pointer of its task"
        ),
        false => format!("the flow {flow_id} does not run the flow {of:?}"),
    }))
}

/// The flows that a version runs.
fn runs_of(
    sql: &mut impl Sql,
    tenant_id: uuid::Uuid,
    known: &Arc<Known>,
) -> Result<Vec<(String, String)>> {
    let uses = known.uses(UseKind::Flow);
    if uses.is_empty() {
        return Ok(Vec::new());
    }
    let flows = flow_parts::flows(sql, tenant_id, &uses)?;
    let flows = flows.into_iter().map(|flow| (flow.flow_id, flow.version));
    Ok(flows.collect())
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
