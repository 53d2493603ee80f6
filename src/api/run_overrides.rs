//! `overrides` of a run: what it sets in place of its agent's version, if the version allows it.

use super::request_parts::{SOME_ID, invalid_body};
use super::version_fields::{check_model, parameters_fault};
use crate::error::{Code, Error, Result};
use crate::http::input::Name;
use crate::ids::Id;
use crate::model::Parameters;
use crate::proof::{Authorized, Write};
use crate::runtime::turn::definition::RunLimits;
use crate::store::agent_versions::{self, Override, RefersTo};
use crate::store::agents::Agent;
use crate::store::{Sql, runs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The place of the overrides in the body.
const AT: &str = "$.overrides";

/// What a run sets in place of its version's own. A field that is left out stays as the version has it, also of parameters and
/// limits. The version's `overrides` says what a run may set: `model` stands for `modelProviderId` and `model`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(rename = "RunOverrides")]
#[schemars(example = serde_json::json!({"modelProviderId": SOME_ID, "model": "large", "parameters": {"temperature": 0}}))]
pub(super) struct Overrides {
    /// The provider of the model. Left out: the version's.
    model_provider_id: Option<Id>,
    /// One of the provider's models. Left out: the version's.
    model: Option<Name>,
    parameters: Parameters,
    limits: RunLimits,
}

impl Overrides {
    /// Whether all is within bounds.
    pub(super) fn check_bounds(&self) -> Result<()> {
        if let Some((path, expected)) = parameters_fault(&self.parameters, AT) {
            return Err(invalid_body(&path, expected));
        }
        match self.limits.fault() {
            Some(said) => Err(invalid_body(
                &format!("{AT}.limits"),
                said.trim_end_matches('.'),
            )),
            None => Ok(()),
        }
    }

    /// As the run keeps them, if its version allows them.
    pub(super) fn of_run(
        self,
        sql: &mut impl Sql,
        on: &Authorized<Agent, Write>,
        version: &str,
    ) -> Result<runs::Overrides> {
        let set = runs::Overrides {
            model_provider_id: self.model_provider_id.map(Uuid::from),
            model: self.model.as_ref().map(|name| name.as_str().to_owned()),
            parameters: fields_of(&self.parameters)?,
            limits: fields_of(&self.limits)?,
        };
        if set.is_empty() {
            return Ok(set);
        }
        let version = agent_versions::read(sql, on, version)?;
        for (is_set, needed, field) in [
            (
                set.model_provider_id.is_some(),
                Override::Model,
                "modelProviderId",
            ),
            (set.model.is_some(), Override::Model, "model"),
            (
                !set.parameters.is_empty(),
                Override::Parameters,
                "parameters",
            ),
            (!set.limits.is_empty(), Override::Limits, "limits"),
        ] {
            if is_set && !version.overrides.contains(&needed) {
                return Err(not_allowed(&version.version, needed, field));
            }
        }
        if set.model.is_none() && set.model_provider_id.is_none() {
            return Ok(set);
        }
        let provider_id = set.model_provider_id.unwrap_or(version.model_provider_id);
        let model = set.model.unwrap_or(version.model);
        let to = RefersTo {
            model_provider_id: provider_id,
            model: &model,
            tool_ids: &[],
        };
        check_model(
            &agent_versions::references(sql, on, on.row().project_id, to)?,
            AT,
        )?;
        Ok(runs::Overrides {
            model_provider_id: Some(provider_id),
            model: Some(model),
            ..set
        })
    }
}

fn not_allowed(version: &str, needed: Override, field: &str) -> Error {
    let needed = needed.text();
    Error::new(
        Code::OverrideNotAllowed,
        format!(
            "Version {version} of the agent does not let a run set {field}. Leave it out, or start a version whose overrides have \"{needed}\"."
        ),
    )
    .detail("path", format!("{AT}.{field}"))
}

/// The fields that are given.
fn fields_of(given: &impl Serialize) -> Result<Map<String, Value>> {
    match serde_json::to_value(given).map_err(Error::internal)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(Error::internal("fields that are no object")),
    }
}
