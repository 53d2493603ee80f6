//! `/v1/model-providers/{modelProviderId}/check`: asks a provider's server as an agent does, and says what it can do.
//!
//! Guarantees: a check ends soon after [`TIME`], and leaves request threads to others; nothing is changed, and nothing counts as
//! usage. Not here: the steps (`model::probe`).

use crate::error::{Code, Error, Result};
use crate::http::context::Cx;
use crate::http::input::Body;
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::model::Finding;
use crate::proof::{Admin, Authorized};
use crate::runtime::{ProviderCheck, ProviderRow};
use crate::store::model_providers::ModelProvider;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// No call of a check begins after this.
const TIME: Duration = Duration::from_secs(45);

pub(super) fn routes() -> Vec<Route> {
    vec![
        route(
            Method::Post,
            "/v1/model-providers/{modelProviderId}/check",
            "modelProviders.check",
            "Ask a model provider all that an agent needs of it, and say of each step what was found",
            check,
        )
        .answers(&[Code::Conflict]),
    ]
}

/// What is asked.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(example = serde_json::json!({}))]
struct CheckModelProvider {
    /// One of the provider's models; the first by name if absent.
    #[schemars(length(min = 1, max = 200))]
    model: Option<String>,
}

/// What a step found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ModelProviderStep")]
struct StepView {
    /// `models`, `answer`, `streaming`, `usage`, `tools` or `outputSchema`.
    step: &'static str,
    /// Whether it is as an agent needs it. Null: it could not be looked at.
    ok: Option<bool>,
    /// What was found, in a sentence.
    value: String,
    /// What to do, in a sentence, if it is not well.
    what_to_do: Option<&'static str>,
}

impl From<Finding> for StepView {
    fn from(finding: Finding) -> Self {
        Self {
            step: finding.step,
            ok: finding.is_ok,
            value: finding.value,
            what_to_do: finding.remedy,
        }
    }
}

/// What a provider's check found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ModelProviderCheck {
    /// Whether the model answers. The other steps say which agents it can serve.
    ok: bool,
    /// The model that was asked.
    model: String,
    /// The models that the server lists, 500 at most; none where it lists none.
    listed: Vec<String>,
    /// In the order in which they were looked at.
    steps: Vec<StepView>,
}

fn check(
    cx: &Cx<'_>,
    provider: Authorized<ModelProvider, Admin>,
    Body(asked): Body<CheckModelProvider>,
) -> Result<Found<ModelProviderCheck>> {
    let row = provider.row();
    let registered = row.model_names();
    let model = match asked.model {
        None => registered.first().cloned().unwrap_or_default(),
        Some(model) if registered.contains(&model) => model,
        Some(_) => {
            let expected = format!("one of the provider's models: {}", registered.join(", "));
            return Err(super::request_parts::invalid_body("$.model", expected));
        }
    };
    let _permit = cx.external_call_permit(provider.caller().tenant_id)?;
    let check = ProviderCheck {
        row: ProviderRow {
            tenant_id: provider.caller().tenant_id,
            model_provider_id: row.model_provider_id,
            base_url: &row.base_url,
            api_key_name: row.api_key_name.as_deref(),
            api_key_secret: row.api_key_secret.as_ref(),
            options: &row.options,
        },
        model: &model,
        registered: &registered,
        time: TIME,
    };
    let probed = cx.runtime().check_provider(&check).map_err(|said| {
        let text = format!("The model provider cannot be asked. {said}");
        Error::new(Code::Conflict, text)
    })?;
    Ok(Found(ModelProviderCheck {
        ok: probed.answers(),
        model,
        listed: probed.listed,
        steps: probed.findings.into_iter().map(StepView::from).collect(),
    }))
}
