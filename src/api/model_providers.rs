//! `/v1/model-providers`: the tenant's model providers, their models and prices.

use super::model_provider_options;
use super::page_query::PageQuery;
use super::request_parts::{check_secret, check_url, given, invalid_body};
use crate::error::{Code, Error, Result};
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::faults::both;
use crate::http::input::{Body, Name, Nothing, Query};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::model::ProviderOptions;
use crate::proof::{Admin, Authorized, Caller, Capability, Listing, Read};
use crate::secrets::SecretRef;
use crate::store::Sql;
use crate::store::model_providers::{self, About, Failing, ModelProvider, Models};
use crate::store::page::Page;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use time::Duration;
use uuid::Uuid;

/// Where a body names the secret.
const SECRET: &str = "$.apiKeySecretRef";

/// Models of a provider at most.
const MODELS_MOST: usize = 200;

/// The highest price. With ten decimals it has 15 digits, which a JSON number carries exactly.
const PRICE_MOST: f64 = 100_000.0;
const PRICE_DECIMALS: usize = 10;

/// How old a call may be that a provider is judged by.
const LOOKED_BACK: Duration = Duration::hours(24);

/// Bounds of a context window, in tokens.
const CONTEXT_WINDOW_LEAST: u32 = 256;
const CONTEXT_WINDOW_MOST: u32 = 100_000_000;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Patch, Post};
    let (all, one) = (
        "/v1/model-providers",
        "/v1/model-providers/{modelProviderId}",
    );
    vec![
        route(Post, all, "modelProviders.create", "Register a model provider", create)
            .answers(&[
                Code::AlreadyExists,
                Code::HostAccessDenied,
                Code::SecretsUnavailable,
            ]),
        route(Get, all, "modelProviders.list", "List the model providers that the caller may read", list),
        route(Get, one, "modelProviders.get", "Read a model provider", read),
        route(
            Patch,
            one,
            "modelProviders.update", "Change a model provider: what is left out stays, a list of models replaces the one that stands",
            change,
        )
        .answers(&[
            Code::AlreadyExists,
            Code::Conflict,
            Code::HostAccessDenied,
            Code::SecretsUnavailable,
        ]),
        route(Delete, one, "modelProviders.delete", "Delete a model provider that no version of an agent uses", delete)
            .answers(&[Code::Conflict]),
    ]
}

/// US dollars per million tokens: 0 to 100000, with 10 decimals at most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Price(f64);

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let price = f64::deserialize(deserializer)?;
        // The shortest text that reads back as the number, which is never in exponent form.
        let decimals = price
            .to_string()
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len());
        if (0.0..=PRICE_MOST).contains(&price) && decimals <= PRICE_DECIMALS {
            return Ok(Self(price));
        }
        Err(serde::de::Error::custom(format!(
            "expected US dollars per million tokens, 0 to {PRICE_MOST} with at most {PRICE_DECIMALS} decimals"
        )))
    }
}

impl JsonSchema for Price {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Price".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "number", "minimum": 0, "maximum": PRICE_MOST})
    }
}

/// What a model costs, in US dollars per million tokens. Cache tokens are part of the prompt,
/// reasoning tokens part of the completion: a part without a price costs what its whole costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Prices {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<Price>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    completion: Option<Price>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cache_read: Option<Price>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cache_write: Option<Price>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning: Option<Price>,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Model {
    /// The provider's name of it.
    name: Name,
    /// How many tokens it takes, prompt and answer together. With it, the oldest exchanges of a
    /// conversation are left out of a prompt that would not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 256, max = 100_000_000))]
    context_window: Option<u32>,
    #[serde(default)]
    prices: Prices,
}

/// A model provider.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ModelProvider")]
struct View {
    id: Uuid,
    name: String,
    base_url: String,
    api_key_name: Option<String>,
    api_key_secret_ref: Option<SecretRef>,
    /// How it is asked.
    #[schemars(with = "ProviderOptions")]
    server_options: serde_json::Value,
    /// By name.
    #[schemars(with = "Vec<Model>")]
    models: serde_json::Value,
    created_by: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Its newest calls, where they failed: none has gone well since. For tenant admins alone, where a provider is read; of
    /// the last 24 hours, and of the newest 500 calls of the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing: Option<FailingView>,
}

/// Calls of a model provider that failed, with none that went well since.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FailingCalls")]
struct FailingView {
    /// How many.
    calls: i64,
    /// When the first of them had failed.
    first_at: Timestamp,
    /// When the last of them had.
    last_at: Timestamp,
    /// Why the last one failed; null if it was erased.
    failure: Option<String>,
}

impl From<Failing> for FailingView {
    fn from(failing: Failing) -> Self {
        Self {
            calls: failing.calls,
            first_at: failing.first_at.into(),
            last_at: failing.last_at.into(),
            failure: failing.failure,
        }
    }
}

impl From<ModelProvider> for View {
    fn from(provider: ModelProvider) -> Self {
        Self {
            id: provider.model_provider_id,
            name: provider.name,
            base_url: provider.base_url,
            api_key_name: provider.api_key_name,
            api_key_secret_ref: provider.api_key_secret,
            server_options: provider.options,
            models: provider.models,
            created_by: provider.created_by,
            created_at: provider.created_at.into(),
            updated_at: provider.updated_at.into(),
            failing: None,
        }
    }
}

/// A model provider to register.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "name": "models",
    "baseUrl": "https://models.example.com/v1",
    "models": [{"name": "small", "contextWindow": 128000, "prices": {"prompt": 0.15, "completion": 0.6}}],
}))]
struct NewModelProvider {
    /// Unique in the tenant.
    name: Name,
    /// Where its OpenAI-compatible API begins; usually ends in `/v1`.
    #[schemars(length(max = 2048), extend("format" = "uri"))]
    base_url: String,
    /// The name of a key that the operator listed for the base URL's origin (`SVC_MODEL_KEYS`).
    api_key_name: Option<Name>,
    /// The secret that is its key, read for each call; not beside `apiKeyName`. It goes to the base
    /// URL.
    api_key_secret_ref: Option<SecretRef>,
    /// How it is asked.
    #[serde(default)]
    server_options: ProviderOptions,
    #[schemars(length(min = 1, max = 200))]
    models: Vec<Model>,
}

/// What to change of a model provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"name": "models-in-europe"}))]
struct ChangeModelProvider {
    name: Option<Name>,
    #[schemars(length(max = 2048), extend("format" = "uri"))]
    base_url: Option<String>,
    /// Null: it takes no key.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<Name>")]
    api_key_name: Option<Option<Name>>,
    /// Null: it takes no secret.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<SecretRef>")]
    api_key_secret_ref: Option<Option<SecretRef>>,
    /// They replace those that stand.
    server_options: Option<ProviderOptions>,
    #[schemars(length(min = 1, max = 200))]
    models: Option<Vec<Model>>,
}

fn create(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Body(new): Body<NewModelProvider>,
) -> Result<Created<View>> {
    let OnTenant(may) = tenant;
    let about = About {
        name: new.name.as_str(),
        base_url: &new.base_url,
        api_key_name: new.api_key_name.as_ref().map(Name::as_str),
        api_key_secret: new.api_key_secret_ref.as_ref(),
        options: &serde_json::to_value(&new.server_options).map_err(Error::internal)?,
    };
    let secret = match about.api_key_secret {
        None => Ok(()),
        Some(at) => {
            cx.checker()?.needs(Capability::SecretsWrite)?;
            check_secret(cx, may.caller().tenant_id, SECRET, at)
        }
    };
    let fits = both(secret, check(cx, may.caller(), &about));
    let options =
        model_provider_options::check(cx.model_keys(), &new.server_options, about.base_url);
    let fits = both(fits, options);
    let (_, models) = both(fits, checked(&new.models))?;
    let (id, now) = (cx.new_id(), cx.now());
    let provider = cx
        .transact(|tx| model_providers::insert(tx, &may, may.caller(), id, &about, &models, now))?;
    Ok(Created(provider.into()))
}

/// The URL may be reached, and the key goes to it.
fn check(cx: &Cx<'_>, caller: &Caller, about: &About<'_>) -> Result<()> {
    let tenant = format!("tenant:{}", caller.tenant_id);
    let url = check_url(cx, caller, &tenant, "$.baseUrl", about.base_url);
    both(url, check_key(cx, about)).map(|_| ())
}

fn check_key(cx: &Cx<'_>, about: &About<'_>) -> Result<()> {
    if about.api_key_name.is_some() && about.api_key_secret.is_some() {
        let expected = "no secret beside an apiKeyName: one of them is to be null";
        return Err(invalid_body(SECRET, expected));
    }
    let Some(name) = about.api_key_name else {
        return Ok(());
    };
    cx.model_keys().check(name, about.base_url).map_err(|said| {
        Error::new(
            Code::InvalidBody,
            format!("The body's $.apiKeyName: {said} Keys are listed in SVC_MODEL_KEYS."),
        )
        .detail("path", "$.apiKeyName")
        .detail("setting", "SVC_MODEL_KEYS")
    })
}

fn checked(models: &[Model]) -> Result<Models<'_>> {
    if models.is_empty() || models.len() > MODELS_MOST {
        let expected = format!("1 to {MODELS_MOST} models");
        return Err(invalid_body("$.models", expected));
    }
    let mut seen = HashSet::new();
    for (index, model) in models.iter().enumerate() {
        if !seen.insert(model.name.as_str()) {
            let path = format!("$.models[{index}].name");
            return Err(invalid_body(&path, "a name that stands once"));
        }
        let bounds = CONTEXT_WINDOW_LEAST..=CONTEXT_WINDOW_MOST;
        if !model
            .context_window
            .is_none_or(|tokens| bounds.contains(&tokens))
        {
            let path = format!("$.models[{index}].contextWindow");
            let expected = format!("{CONTEXT_WINDOW_LEAST} to {CONTEXT_WINDOW_MOST} tokens");
            return Err(invalid_body(&path, expected));
        }
    }
    Ok(Models {
        names: models.iter().map(|model| model.name.as_str()).collect(),
        json: serde_json::to_value(models).map_err(Error::internal)?,
    })
}

fn list(
    cx: &Cx<'_>,
    listing: Listing<ModelProvider>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let binding = "model-providers";
    let page = query.page(&binding)?;
    let mut session = cx.store().session()?;
    let rows = model_providers::list(&mut session, &listing, &page)?;
    let failing = failing(cx, &mut session, listing.caller())?;
    Ok(Found(page.page(
        rows,
        |row| row.model_provider_id,
        |row| view(row, &failing),
    )))
}

fn read(cx: &Cx<'_>, provider: Authorized<ModelProvider, Read>, _: Nothing) -> Result<Found<View>> {
    let failing = failing(cx, &mut cx.store().session()?, provider.caller())?;
    Ok(Found(view(provider.into_row(), &failing)))
}

fn failing(cx: &Cx<'_>, session: &mut impl Sql, caller: &Caller) -> Result<HashMap<Uuid, Failing>> {
    let since = cx.now() - LOOKED_BACK;
    let rows = model_providers::failing(session, caller, cx.enforces(), since)?;
    let by_id = rows.into_iter().map(|row| (row.model_provider_id, row));
    Ok(by_id.collect())
}

fn view(provider: ModelProvider, failing: &HashMap<Uuid, Failing>) -> View {
    let failing = failing.get(&provider.model_provider_id);
    View {
        failing: failing.cloned().map(Into::into),
        ..provider.into()
    }
}

fn change(
    cx: &Cx<'_>,
    provider: Authorized<ModelProvider, Admin>,
    Body(change): Body<ChangeModelProvider>,
) -> Result<Found<View>> {
    let models = change.models.as_deref().map(checked).transpose()?;
    if let Some(Some(at)) = &change.api_key_secret_ref {
        cx.checker()?.needs(Capability::SecretsWrite)?;
        check_secret(cx, provider.caller().tenant_id, SECRET, at)?;
    }
    let now = cx.now();
    let changed = cx.transact(|tx| {
        // What stays and what is new must fit each other, so nobody may change the rest meanwhile.
        let before = model_providers::lock(tx, &provider)?;
        let options = match &change.server_options {
            Some(options) => &serde_json::to_value(options).map_err(Error::internal)?,
            None => &before.options,
        };
        let about = About {
            name: change.name.as_ref().map_or(&before.name, Name::as_str),
            base_url: change.base_url.as_deref().unwrap_or(&before.base_url),
            api_key_name: match &change.api_key_name {
                Some(given) => given.as_ref().map(Name::as_str),
                None => before.api_key_name.as_deref(),
            },
            api_key_secret: match &change.api_key_secret_ref {
                Some(given) => given.as_ref(),
                None => before.api_key_secret.as_ref(),
            },
            options,
        };
        // The secret goes to wherever the provider is said to be.
        if change.base_url.is_some() && about.api_key_secret.is_some() {
            cx.checker()?.needs(Capability::SecretsWrite)?;
        }
        let names_a_key = change.api_key_name.is_some() || change.api_key_secret_ref.is_some();
        if change.base_url.is_some() || names_a_key {
            check(cx, provider.caller(), &about)?;
        }
        if change.base_url.is_some() || change.server_options.is_some() {
            let options = ProviderOptions::deserialize(options).map_err(Error::internal)?;
            model_provider_options::check(cx.model_keys(), &options, about.base_url)?;
        }
        model_providers::update(tx, &provider, &about, models.as_ref(), now)
    })?;
    Ok(Found(changed.into()))
}

fn delete(cx: &Cx<'_>, provider: Authorized<ModelProvider, Admin>, _: Nothing) -> Result<Gone> {
    cx.transact(|tx| model_providers::delete(tx, &provider))?;
    Ok(Gone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_price_has_bounds_and_ten_decimals() {
        for good in [
            "0",
            "0.15",
            "100000",
            "99999.9999999999",
            "1e-10",
            "2.50",
            "1e2",
        ] {
            let price: Price = serde_json::from_str(good).unwrap();
            assert_eq!(price.0, good.parse::<f64>().unwrap());
        }
        for bad in [
            "-0.1",
            "100000.1",
            "1e-11",
            "0.12345678901",
            "\"1\"",
            "null",
        ] {
            assert!(serde_json::from_str::<Price>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn models_have_names_of_their_own() {
        let model =
            |name: &str| -> Model { serde_json::from_value(json!({"name": name})).unwrap() };
        let two = [model("a"), model("b")];
        let models = checked(&two).unwrap();
        assert_eq!(models.names, ["a", "b"]);
        assert_eq!(
            models.json,
            json!([{"name": "a", "prices": {}}, {"name": "b", "prices": {}}])
        );
        assert!(checked(&[]).is_err());
        assert!(checked(&vec![model("a"); 2]).is_err());
        let many: Vec<Model> = (0..=MODELS_MOST).map(|n| model(&n.to_string())).collect();
        assert!(checked(&many).is_err());
    }

    #[test]
    fn a_null_key_is_not_a_key_left_out() {
        let read = |body| serde_json::from_value::<ChangeModelProvider>(body).unwrap();
        assert!(read(json!({})).api_key_name.is_none());
        assert!(
            read(json!({"apiKeyName": null}))
                .api_key_name
                .is_some_and(|given| given.is_none())
        );
        assert!(
            read(json!({"apiKeyName": "k"}))
                .api_key_name
                .flatten()
                .is_some()
        );
    }
}
