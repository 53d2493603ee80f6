//! The definition of a flow: a subset of the Open Workflow DSL 1.0 in its JSON form.
//!
//! Guarantees:
//!
//! - A definition is pure data. It names tools, agents and flows, and knows nothing of the rows behind the names.
//!
//! - A [`tree::Definition`] is always valid: expressions are parsed, schemas are compiled, targets of `then` exist, and
//!   everything named in `use` is copied to where it is used.
//!
//! - [`examine`] reports all faults at once, each with its place, a sentence, and for common mistakes a hint. Unsupported
//!   parts of the language are refused by name.
//!
//! Not here: running it (`runtime::flow`).

mod around;
mod blocks;
mod calls;
mod declared;
mod document;
pub mod duration;
pub mod error_types;
mod errors;
pub mod fault;
pub mod graph;
mod guardrails;
mod http;
mod reads;
pub mod references;
mod tasks;
#[cfg(test)]
mod tests;
pub mod tree;
pub mod unsupported;
mod values;
mod walk;

pub use document::is_flow_id;
pub use http::is_secret_header;

use fault::Fault;
use serde_json::Value;
use tree::Definition;

/// What was found in a definition.
#[derive(Debug)]
pub struct Report {
    /// The definition, if it has no faults.
    pub definition: Option<Definition>,
    /// What is wrong, at most [`fault::FAULTS_MOST`].
    pub faults: Vec<Fault>,
    /// What is probably not meant, at most [`fault::FAULTS_MOST`].
    pub warnings: Vec<Fault>,
}

/// Reads a definition, and tells what is wrong and what is probably not meant.
pub fn examine(definition: &Value) -> Report {
    let mut walk = walk::Walk::default();
    let found = walk
        .definition(definition)
        .filter(|_| walk.faults.is_empty());
    let needs = walk.needs;
    let reads_itself = needs.definition || needs.task_definition;
    let definition = found.map(|found| Definition {
        references: std::mem::take(&mut walk.references),
        source: reads_itself.then(|| definition.clone()),
        needs,
        ..found
    });
    Report {
        definition,
        faults: walk.faults,
        warnings: walk.warnings,
    }
}

/// Reads a definition.
///
/// # Errors
/// What is wrong with it, one fault at least.
pub fn check(definition: &Value) -> Result<Definition, Vec<Fault>> {
    let report = examine(definition);
    report.definition.ok_or(report.faults)
}
