//! The SQL functions of `sql/functions` and of the job queue, which are replaced as one set.
//!
//! Each migrate whose set differs from the one that stands replaces it in one transaction. A function that changed keeps its
//! identity where its signature is the same, so that callers at that moment see the one or the other. A function that is not
//! in the set any more is dropped. A program never brings an older set back: it leaves the functions alone where its set
//! stood before, or where a set of a later version stands.

use super::row::Columns;
use crate::error::{Error, Result};
use crate::sql;
use postgres::{GenericClient, Transaction};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

macro_rules! functions {
    ($($name:literal,)*) => {
        &[$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/functions/", $name, ".sql")),
        )),*]
    };
}

/// Name and text of each function of `sql/functions`: one definition a name.
const OWN: &[(&str, &str)] = functions![
    "agent_tools",
    "approval_assign_named",
    "approval_decide",
    "approval_escalate",
    "approval_void",
    "attach_audit_partition",
    "attach_audit_partitions",
    "attach_run_partition",
    "attach_run_partitions",
    "attach_webhook_partitions",
    "conversation_calls",
    "conversation_history",
    "conversation_prompt",
    "drop_audit_partitions",
    "drop_webhook_month",
    "flow_load",
    "identity_providers_of",
    "key_owner",
    "model_call_cost",
    "model_call_give_back",
    "model_call_grant",
    "model_call_take",
    "open_sessions",
    "policies_of",
    "readable_projects",
    "run_begin_step",
    "run_cancel",
    "run_cancel_batch",
    "run_cancel_children",
    "run_cancel_descendants",
    "run_cancel_one",
    "run_commit",
    "run_created",
    "run_erase_payloads",
    "run_events_after",
    "run_events_beside",
    "run_has_many_below",
    "run_levels",
    "run_options",
    "run_record_end",
    "run_refuse_child",
    "run_starters",
    "run_take_children",
    "run_totals",
    "run_update_jobs",
    "run_write",
    "tool_child",
    "tool_definition",
    "usage_sum",
    "webhook_begin_attempts",
    "webhook_emit",
    "webhook_finish_attempts",
];

/// Every function of this program, by name and text.
fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    OWN.iter().chain(jobs::FUNCTIONS).copied()
}

/// Whether this program would replace the functions, where a set is recorded.
pub(super) fn is_pending(client: &mut impl GenericClient) -> Result<bool> {
    let parsed = |text: &str| semver::Version::parse(text).map_err(Error::internal);
    let own = parsed(env!("CARGO_PKG_VERSION"))?;
    for row in client.query(sql!("schema/function_sets"), &[&digest()])? {
        let is_own: bool = row.column("is_own")?;
        if is_own || parsed(row.column("version")?)? > own {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes the functions that stand this program's.
///
/// # Errors
/// The database refuses, or cannot be reached.
pub(super) fn replace(tx: &mut Transaction) -> Result<()> {
    let rows = tx.query(sql!("schema/functions"), &[])?;
    let mut standing: BTreeMap<String, String> = BTreeMap::new();
    for row in &rows {
        standing.insert(row.column("name")?, row.column("definition")?);
    }
    for (name, text) in all() {
        let before = standing.remove(name);
        if before.as_deref() == Some(text) {
            continue;
        }
        let (head, definition) = split(text);
        if before.is_some_and(|before| signature(split(&before).1) != signature(definition)) {
            drop_function(tx, name)?;
        }
        tx.batch_execute(&format!("{head}create or replace function {definition}"))?;
        tx.execute(sql!("schema/record_function"), &[&name, &text])?;
    }
    for name in standing.keys() {
        drop_function(tx, name)?;
        tx.execute(sql!("schema/forget_function"), &[name])?;
    }
    let version = env!("CARGO_PKG_VERSION");
    tx.execute(sql!("schema/record_function_set"), &[&digest(), &version])?;
    Ok(())
}

fn drop_function(tx: &mut Transaction, name: &str) -> Result<()> {
    for row in tx.query(sql!("schema/drops_of_function"), &[&name])? {
        tx.batch_execute(row.only()?)?;
    }
    Ok(())
}

/// What stands before the words that create the function, and what stands after them.
fn split(text: &str) -> (&str, &str) {
    const CREATES: &str = "create function ";
    match text.to_ascii_lowercase().find(CREATES) {
        Some(at) => (&text[..at], &text[at + CREATES.len()..]),
        None => ("", text),
    }
}

/// What PostgreSQL replaces in place only if it is the same: name, parameters and result.
fn signature(definition: &str) -> &str {
    let end = definition
        .to_ascii_lowercase()
        .match_indices("language ")
        .map(|(at, _)| at)
        .find(|at| definition[..*at].ends_with(char::is_whitespace));
    definition[..end.unwrap_or(definition.len())].trim_end()
}

fn digest() -> Vec<u8> {
    let mut digest = Sha256::new();
    for part in all().flat_map(|(name, text)| [name, text]) {
        digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn each_file_is_one_function_of_its_name_and_in_the_set() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/functions");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let listed: BTreeSet<String> = OWN.iter().map(|(name, _)| format!("{name}.sql")).collect();
        assert_eq!(files, listed, "sql/functions and the list in this module");
        for (name, text) in all() {
            let (head, definition) = split(text);
            let is_comment = |line: &str| line.starts_with("--");
            assert!(
                head.lines().all(is_comment),
                "{name}: comments, and then the function"
            );
            assert!(definition.starts_with(&format!("{name}(")), "{name}");
            let others = definition.to_ascii_lowercase();
            assert!(
                !others.contains("create function "),
                "{name}: one function a file"
            );
            assert!(
                signature(definition).len() < definition.len(),
                "{name}: it says its language"
            );
        }
        let names: BTreeSet<&str> = all().map(|(name, _)| name).collect();
        assert_eq!(names.len(), all().count(), "one definition a name");
    }

    #[test]
    fn a_signature_is_all_before_the_language() {
        let text = "-- A function.\nCREATE FUNCTION f(a_language text)\nRETURNS bigint\nLANGUAGE sql AS $$ 1 $$;";
        let (head, definition) = split(text);
        assert_eq!(head, "-- A function.\n");
        assert_eq!(signature(definition), "f(a_language text)\nRETURNS bigint");
        assert_eq!(signature("what no file says"), "what no file says");
    }
}
