//! Definitions in bodies: read, with what they name looked up in their project, or refused with every fault.
//!
//! Not here: the routes (`flows`), and what a definition may say (`crate::flows::definition`).

use crate::error::{Code, Error, Result};
use crate::flows::definition::fault::{self, FAULTS_MOST};
use crate::flows::definition::references::{Reference, ReferenceKind};
use crate::flows::definition::tree::Definition;
use crate::flows::definition::{Report, examine};
use crate::proof::{Kind, May, Write};
use crate::store::Sql;
use crate::store::flow_versions::{self, Use, UseKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// What is wrong with a definition, or probably not meant.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FlowFault")]
pub(super) struct FaultView {
    /// Where in the definition, a JSON path: `$.do[2].small.switch[0].yes.then`.
    path: String,
    /// What kind of fault, such as `unknown-field`.
    code: &'static str,
    /// One sentence.
    message: String,
    /// Which characters of the text at `path` are wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<SpanView>,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// A part of a text, in Unicode code points.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FlowFaultSpan")]
pub(super) struct SpanView {
    /// The first one, from 0.
    start: usize,
    /// The first one after it.
    end: usize,
}

impl From<fault::Fault> for FaultView {
    fn from(fault: fault::Fault) -> Self {
        Self {
            path: fault.path,
            code: fault.code.name(),
            message: fault.message,
            span: fault.span.map(|span| SpanView {
                start: span.start,
                end: span.end,
            }),
            hint: fault.hint,
        }
    }
}

/// A flow that is being made or given a version.
pub(super) struct Own<'a> {
    pub(super) id: Uuid,
    pub(super) flow_id: &'a str,
    pub(super) version: &'a str,
}

impl Own<'_> {
    fn is_named(&self, reference: &Reference) -> bool {
        let version = reference.version.as_deref();
        reference.kind == ReferenceKind::Flow
            && reference.name == self.flow_id
            && version.is_none_or(|named| named == self.version)
    }
}

pub(super) fn invalid(faults: Vec<fault::Fault>) -> Error {
    let first = faults.first().map_or_else(String::new, |first| {
        format!("{}: {}", first.path, first.message)
    });
    let faults: Vec<FaultView> = faults.into_iter().map(Into::into).collect();
    let said = format!("The definition was refused. {first}");
    Error::new(Code::FlowInvalid, said).detail("faults", json!(faults))
}

/// The definition without faults of its own, and what in it is probably not meant.
pub(super) fn read_definition(definition: &Value) -> Result<(Definition, Vec<FaultView>)> {
    let Report {
        definition,
        faults,
        warnings,
    } = examine(definition);
    let definition = definition.ok_or_else(|| invalid(faults))?;
    Ok((definition, warnings.into_iter().map(Into::into).collect()))
}

/// What the definition names in its project, or what is not there.
pub(super) fn uses_of<K: Kind>(
    sql: &mut impl Sql,
    may: &impl May<Write, K>,
    project_id: Uuid,
    (definition, own): (&Definition, &Own<'_>),
) -> Result<std::result::Result<Vec<Use>, Vec<fault::Fault>>> {
    let references = definition.references();
    let names: Vec<(UseKind, &str, Option<&str>)> = references
        .iter()
        .map(|one| (kind_of(one.kind), one.name.as_str(), one.version.as_deref()))
        .collect();
    let found = flow_versions::resolve(sql, may, project_id, &names)?;
    let (mut uses, mut faults) = (Vec::new(), Vec::new());
    for (reference, named) in references.iter().zip(found) {
        let id = match own.is_named(reference) {
            true => Some(own.id),
            false => named.used_id.filter(|_| named.has_version),
        };
        match id {
            Some(id) => uses.push(Use {
                kind: named.kind,
                name: named.name,
                version: named.version,
                id,
            }),
            None => faults.push(missing(reference, named.used_id.is_some())),
        }
    }
    faults.truncate(FAULTS_MOST);
    Ok(match faults.is_empty() {
        true => Ok(uses),
        false => Err(faults),
    })
}

fn kind_of(kind: ReferenceKind) -> UseKind {
    match kind {
        ReferenceKind::Tool => UseKind::Tool,
        ReferenceKind::Agent => UseKind::Agent,
        ReferenceKind::Flow => UseKind::Flow,
    }
}

fn missing(reference: &Reference, is_known: bool) -> fault::Fault {
    let (kind, name) = (kind_of(reference.kind).text(), &reference.name);
    let version = reference.version.as_deref().filter(|_| is_known);
    let (message, hint) = match version {
        Some(version) => (
            format!("The {kind} {name} has no version {version}."),
            "Name another version, or leave it out for the live one.",
        ),
        None => (
            format!("The project has no {kind} {name}."),
            match reference.kind {
                ReferenceKind::Tool => "Register it in this project first: POST /v1/tools.",
                ReferenceKind::Agent => {
                    "Make it in this project first, with a version: POST /v1/agents."
                }
                ReferenceKind::Flow => "Push that flow to this project first.",
            },
        ),
    };
    fault::Fault {
        path: reference.path.clone(),
        code: fault::Code::UnknownReference,
        message,
        span: None,
        hint: Some(hint.to_owned()),
    }
}
