//! Versions of flows, and what they name.
//!
//! A version never changes and is never deleted. What it names in its project is looked up when it is made, and stays what it
//! was: a tool that a version names is not deleted. The version of an agent or a flow that a definition leaves out is chosen
//! when its step begins.
//!
//! Not here: reading a definition (`crate::flows`).

use super::flows::{self, Flow, no_version};
use super::page::Request;
use super::projects::{self, Project};
use super::semantic_versions::{is_above, parse};
use super::{Columns, Find, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Authorized, Kind, May, Read, Write};
use crate::{from_row, list_sql, sql, texts};
use postgres::error::SqlState;
use semver::Version;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    /// What a definition names.
    UseKind {
        /// A tool.
        Tool = "tool",
        /// An agent.
        Agent = "agent",
        /// Another flow, or itself.
        Flow = "flow",
    }
}

/// A version of a flow.
#[derive(Debug, Clone)]
pub struct FlowVersion {
    /// `namespace.name` of its flow.
    pub flow_id: String,
    /// Its flow's row.
    pub id: Uuid,
    /// The semantic version.
    pub version: String,
    /// What its author wrote.
    pub definition: Value,
    /// SHA-256 of the definition.
    pub digest: Vec<u8>,
    /// Who made it.
    pub created_by: Uuid,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

/// A version in the list of its flow's.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The semantic version.
    pub version: String,
    /// Its number in the order of making, from 1.
    pub position: i64,
    /// Who made it.
    pub created_by: Uuid,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

/// What a run does.
#[derive(Debug, Clone, PartialEq)]
pub struct Pinned {
    /// Its flow's row.
    pub id: Uuid,
    /// What its author wrote.
    pub definition: Value,
    /// What it names, in the order of its text.
    pub uses: Vec<Use>,
}

/// Something that a version names, as it was found when the version was made.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Use {
    /// What it is.
    pub kind: UseKind,
    /// As the definition names it.
    pub name: String,
    /// The version that the definition names, of an agent or a flow.
    pub version: Option<String>,
    /// Its row.
    pub id: Uuid,
}

/// A name in a definition, and what it stands for in the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// What is named.
    pub kind: UseKind,
    /// As the definition names it.
    pub name: String,
    /// The version, if one is named.
    pub version: Option<String>,
    /// The row, if the project has it.
    pub used_id: Option<Uuid>,
    /// It has the version that is named, or none is.
    pub has_version: bool,
}

from_row!(FlowVersion {
    flow_id,
    id,
    version,
    definition,
    digest,
    created_by,
    created_at
});

from_row!(Listed {
    version,
    position,
    created_by,
    created_at
});

from_row!(Named {
    kind,
    name,
    version,
    used_id,
    has_version
});

/// A version to make.
#[derive(Debug)]
pub struct NewVersion<'a> {
    /// The semantic version.
    pub version: Version,
    /// What its author wrote.
    pub definition: &'a Value,
    /// SHA-256 of the definition.
    pub digest: [u8; 32],
    /// What it names. All of it was found.
    pub uses: &'a [Use],
}

/// SHA-256 of a definition, whatever the order of its keys.
pub fn digest_of(definition: &Value) -> [u8; 32] {
    Sha256::digest(sorted(definition).to_string()).into()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            let fields = fields.into_iter();
            Value::Object(
                fields
                    .map(|(name, value)| (name.clone(), sorted(value)))
                    .collect(),
            )
        }
        _ => value.clone(),
    }
}

/// What these names stand for in the project, in their order.
pub fn resolve<K: Kind>(
    sql: &mut impl Sql,
    may: &impl May<Write, K>,
    project_id: Uuid,
    names: &[(UseKind, &str, Option<&str>)],
) -> Result<Vec<Named>> {
    let kinds: Vec<&str> = names.iter().map(|(kind, ..)| kind.text()).collect();
    let texts: Vec<&str> = names.iter().map(|(_, name, _)| *name).collect();
    let versions: Vec<Option<&str>> = names.iter().map(|(.., version)| *version).collect();
    sql.fetch_all(
        sql!("flow_versions/resolve"),
        &[&may.tenant_id(), &project_id, &kinds, &texts, &versions],
    )
}

/// Registers a flow in the project, with its first version.
///
/// # Errors
/// `already-exists`: the project has a flow of this id. `project-archived`. `conflict`: a tool that the version names was
/// removed meanwhile. `database-unavailable`.
pub fn register(
    tx: &mut Tx<'_>,
    may: &Authorized<Project, Admin>,
    flow: &flows::New<'_>,
    version: &NewVersion<'_>,
    now: OffsetDateTime,
) -> Result<Flow> {
    flows::insert(tx, may, flow, now)?;
    let by = (may.caller().tenant_id, may.caller().user_id);
    put(tx, by, flow.id, version, now)?;
    Flow::find(tx, by.0, flow.id)?.ok_or_else(|| Error::not_found("flow", flow.id))
}

/// Makes a version, and makes it the latest if it is the highest. The same version once more answers what stands.
///
/// # Errors
/// `project-archived`, `flow-archived`. `already-exists`: the flow has this version with another definition. `conflict`: a tool
/// that it names was removed meanwhile. `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &Authorized<Flow, Write>,
    new: &NewVersion<'_>,
    now: OffsetDateTime,
) -> Result<FlowVersion> {
    let creator = may.caller();
    let (tenant_id, id) = (creator.tenant_id, may.row().id);
    projects::lock_open(tx, tenant_id, may.row().project_id)?;
    put(tx, (tenant_id, creator.user_id), id, new, now)
}

/// Makes a version of a flow whose project is locked.
fn put(
    tx: &mut Tx<'_>,
    (tenant_id, user_id): (Uuid, Uuid),
    id: Uuid,
    new: &NewVersion<'_>,
    now: OffsetDateTime,
) -> Result<FlowVersion> {
    let locked: Flow = tx.fetch_one(sql!("flows/lock"), &[&tenant_id, &id])?;
    if locked.archived_at.is_some() {
        return Err(flows::archived(&locked.flow_id, locked.id));
    }
    let version = new.version.to_string();
    if let Some(stands) = find(tx, tenant_id, id, &version)? {
        if stands.digest == new.digest {
            return Ok(stands);
        }
        return Err(Error::new(
            Code::AlreadyExists,
            format!(
                "The flow {} has a version {version} already with another definition, and versions are never changed. Raise `document.version`.",
                locked.flow_id
            ),
        ));
    }
    let latest = parse(locked.latest_version.as_deref())?;
    let becomes_latest = latest.is_none_or(|latest| is_above(&new.version, &latest));
    let column = |of: fn(&Use) -> &str| new.uses.iter().map(of).collect::<Vec<&str>>();
    let ids: Vec<Uuid> = new.uses.iter().map(|used| used.id).collect();
    let versions = new.uses.iter().map(|used| used.version.as_deref());
    let inserted = tx.execute(
        sql!("flow_versions/insert"),
        &[
            &tenant_id,
            &id,
            &version,
            &new.definition,
            &new.digest.as_slice(),
            &user_id,
            &now,
            &becomes_latest,
            &column(|used| used.kind.text()),
            &column(|used| &used.name),
            &ids,
            &versions.collect::<Vec<Option<&str>>>(),
        ],
    );
    on_violation(inserted, &SqlState::FOREIGN_KEY_VIOLATION, || {
        Error::new(
            Code::Conflict,
            "A tool that the version names was removed meanwhile. Look again.",
        )
    })?;
    find(tx, tenant_id, id, &version)?.ok_or_else(|| no_version(&version))
}

fn find(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    id: Uuid,
    version: &str,
) -> Result<Option<FlowVersion>> {
    sql.fetch_optional(sql!("flow_versions/find"), &[&tenant_id, &id, &version])
}

/// A version of the flow.
///
/// # Errors
/// `not-found`, `database-unavailable`.
pub fn read(sql: &mut impl Sql, may: &impl May<Read, Flow>, version: &str) -> Result<FlowVersion> {
    find(sql, may.tenant_id(), may.object_id(), version)?.ok_or_else(|| no_version(version))
}

/// What a run of this project does: its flow's version, and what that names.
pub fn definition_of(
    sql: &mut impl Sql,
    (tenant_id, project_id): (Uuid, Uuid),
    flow_id: &str,
    version: &str,
) -> Result<Option<Pinned>> {
    let statement = sql!("flow_versions/definition");
    let row = sql.query_opt(statement, &[&tenant_id, &project_id, &flow_id, &version])?;
    let pinned = row.map(|row| {
        let uses: Value = row.column("uses")?;
        Ok(Pinned {
            id: row.column("id")?,
            definition: row.column("definition")?,
            uses: serde_json::from_value(uses).map_err(Error::internal)?,
        })
    });
    pinned.transpose()
}

/// A page of the flow's versions, in the order in which they were made.
pub fn list(sql: &mut impl Sql, may: &impl May<Read, Flow>, page: &Request) -> Result<Vec<Listed>> {
    let statement = list_sql!("flow_versions/list").by(page.order);
    sql.fetch_all(
        statement,
        &[
            &may.tenant_id(),
            &may.object_id(),
            &page.after_position(),
            &page.rows(),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_is_not_in_the_digest_and_all_else_is() {
        let of = |text: &str| digest_of(&serde_json::from_str(text).unwrap());
        let first = of(r#"{"a": [{"x": 1, "y": 2}, 3], "b": null}"#);
        assert_eq!(first, of(r#"{"b":null,"a":[{"y":2,"x":1},3]}"#));
        for other in [
            r#"{"a": [3, {"x": 1, "y": 2}], "b": null}"#,
            r#"{"a": [{"x": 1, "y": 2}, 3]}"#,
            r#"{"a": [{"x": 1, "y": "2"}, 3], "b": null}"#,
            r#"{"a": [{"x": 1.5, "y": 2}, 3], "b": null}"#,
        ] {
            assert_ne!(first, of(other), "{other}");
        }
        assert_ne!(digest_of(&json!({})), digest_of(&json!([])));
    }
}
