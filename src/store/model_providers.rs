//! Model providers of a tenant, their models and the models' prices.
//!
//! The name of a key or a secret is stored, never a key. A model that an agent version uses cannot
//! be removed. Its prices may change, and each call keeps the prices that it was charged.

use super::page::Request;
use super::runs::ids_between;
use super::secrets::SecretRef;
use super::tenants::{self, Tenant};
use super::{Columns, Find, Finding, FromRow, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, KeyRole, Kind, Listing, May, Scope};
use crate::{find_sql, from_row, list_sql, sql};
use postgres::Row;
use postgres::error::SqlState;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// Of the tenant's newest calls, so many are looked at for those that failed.
const CALLS_LOOKED_AT: i64 = 500;

/// A model provider.
#[derive(Debug, Clone)]
pub struct ModelProvider {
    /// Its id.
    pub model_provider_id: Uuid,
    /// Its name; unique in the tenant.
    pub name: String,
    /// Where its API begins.
    pub base_url: String,
    /// The name of the operator's key that it takes, if it takes one.
    pub api_key_name: Option<String>,
    /// The secret that is its key.
    pub api_key_secret: Option<SecretRef>,
    /// How it is asked: [`crate::model::ProviderOptions`].
    pub options: Value,
    /// Its models, by name: `[{name, contextWindow, prices: {prompt, completion, cacheRead, cacheWrite, reasoning}}]`,
    /// tokens, and US dollars per million tokens; what is unknown is left out.
    pub models: Value,
    /// Who registered it.
    pub created_by: Uuid,
    /// When it was registered.
    pub created_at: OffsetDateTime,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
}

/// What is said of a provider when it is registered or changed.
#[derive(Debug)]
pub struct About<'a> {
    /// See [`ModelProvider`].
    pub name: &'a str,
    /// See [`ModelProvider`].
    pub base_url: &'a str,
    /// See [`ModelProvider`].
    pub api_key_name: Option<&'a str>,
    /// See [`ModelProvider`].
    pub api_key_secret: Option<&'a SecretRef>,
    /// See [`ModelProvider`].
    pub options: &'a Value,
}

/// The newest calls of a provider, which failed.
#[derive(Debug, Clone)]
pub struct Failing {
    /// The provider.
    pub model_provider_id: Uuid,
    /// How many.
    pub calls: i64,
    /// When the first of them had failed.
    pub first_at: OffsetDateTime,
    /// When the last of them had.
    pub last_at: OffsetDateTime,
    /// Why the last one failed.
    pub failure: Option<String>,
}

from_row!(Failing {
    model_provider_id,
    calls,
    first_at,
    last_at,
    failure
});

/// The models of a provider.
#[derive(Debug)]
pub struct Models<'a> {
    /// Their names, each once.
    pub names: Vec<&'a str>,
    /// The models as in [`ModelProvider::models`].
    pub json: Value,
}

impl ModelProvider {
    /// The names of its models, by name.
    pub fn model_names(&self) -> Vec<String> {
        let models = self.models.as_array().into_iter().flatten();
        let names = models.filter_map(|model| model["name"].as_str());
        names.map(str::to_owned).collect()
    }
}

impl Kind for ModelProvider {
    const NAME: &'static str = "model-provider";
    fn id(&self) -> Uuid {
        self.model_provider_id
    }
    fn scope(&self) -> Scope {
        Scope::OnTenant
    }
}

impl Find for ModelProvider {
    const FINDING: Finding = find_sql!("model_providers/find");
    fn read(row: &Row) -> Result<Option<Self>> {
        Self::from_row(row).map(Some)
    }
}

impl FromRow for ModelProvider {
    fn from_row(row: &Row) -> Result<Self> {
        let environment = row.column("api_key_environment")?;
        Ok(Self {
            model_provider_id: row.column("model_provider_id")?,
            name: row.column("name")?,
            base_url: row.column("base_url")?,
            api_key_name: row.column("api_key_name")?,
            api_key_secret: SecretRef::maybe(environment, row.column("api_key_secret")?),
            options: row.column("options")?,
            created_by: row.column("created_by")?,
            created_at: row.column("created_at")?,
            updated_at: row.column("updated_at")?,
            models: row.column("models")?,
        })
    }
}

fn name_taken(name: &str) -> Error {
    Error::new(
        Code::AlreadyExists,
        format!("There is a model provider named {name} already. Choose another name."),
    )
}

fn in_use(what: &str) -> Error {
    Error::new(
        Code::Conflict,
        format!("A version of an agent uses {what}, and versions are kept. It cannot be removed."),
    )
}

/// Registers a provider with its models.
///
/// # Errors
/// `already-exists`: the tenant has a provider of this name. `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    creator: &Caller,
    model_provider_id: Uuid,
    about: &About<'_>,
    models: &Models<'_>,
    now: OffsetDateTime,
) -> Result<ModelProvider> {
    let tenant_id = may.tenant_id();
    let inserted = tx.execute(
        sql!("model_providers/insert"),
        &[
            &tenant_id,
            &model_provider_id,
            &about.name,
            &about.base_url,
            &about.api_key_name,
            &about.api_key_secret.map(|at| &at.environment),
            &about.api_key_secret.map(|at| &at.name),
            &about.options,
            &creator.user_id,
            &now,
        ],
    );
    on_violation(inserted, &SqlState::UNIQUE_VIOLATION, || {
        name_taken(about.name)
    })?;
    tx.execute(
        sql!("model_providers/put_models"),
        &[&tenant_id, &model_provider_id, &models.json],
    )?;
    found(tx, tenant_id, model_provider_id)
}

fn found(tx: &mut Tx<'_>, tenant_id: Uuid, id: Uuid) -> Result<ModelProvider> {
    ModelProvider::find(tx, tenant_id, id)?.ok_or_else(|| Error::not_found(ModelProvider::NAME, id))
}

/// The provider as it is now, kept from other changes until the transaction ends.
///
/// # Errors
/// `not-found`: it was deleted since. `database-unavailable`.
pub fn lock(tx: &mut Tx<'_>, may: &impl May<Admin, ModelProvider>) -> Result<ModelProvider> {
    tx.execute(
        sql!("model_providers/lock"),
        &[&may.tenant_id(), &may.object_id()],
    )?;
    found(tx, may.tenant_id(), may.object_id())
}

/// Changes it; with `models`, they replace those that it has.
///
/// # Errors
/// `already-exists`: the tenant has another provider of this name. `conflict`: a version of an agent
/// uses a model that is to go. `database-unavailable`.
pub fn update(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, ModelProvider>,
    about: &About<'_>,
    models: Option<&Models<'_>>,
    now: OffsetDateTime,
) -> Result<ModelProvider> {
    let (tenant_id, id) = (may.tenant_id(), may.object_id());
    let updated = tx.execute(
        sql!("model_providers/update"),
        &[
            &tenant_id,
            &id,
            &about.name,
            &about.base_url,
            &about.api_key_name,
            &about.api_key_secret.map(|at| &at.environment),
            &about.api_key_secret.map(|at| &at.name),
            &about.options,
            &now,
        ],
    );
    on_violation(updated, &SqlState::UNIQUE_VIOLATION, || {
        name_taken(about.name)
    })?;
    if let Some(models) = models {
        let kept = tx.execute(
            sql!("model_providers/keep_models"),
            &[&tenant_id, &id, &models.names],
        );
        on_violation(kept, &SqlState::FOREIGN_KEY_VIOLATION, || {
            in_use("a model that is left out")
        })?;
        tx.execute(
            sql!("model_providers/put_models"),
            &[&tenant_id, &id, &models.json],
        )?;
    }
    found(tx, tenant_id, id)
}

/// Deletes it with its models.
///
/// # Errors
/// `conflict`: a version of an agent uses it. `database-unavailable`.
pub fn delete(tx: &mut Tx<'_>, may: &impl May<Admin, ModelProvider>) -> Result<()> {
    let deleted = tx.execute(
        sql!("model_providers/delete"),
        &[&may.tenant_id(), &may.object_id()],
    );
    on_violation(deleted, &SqlState::FOREIGN_KEY_VIOLATION, || {
        in_use("this model provider")
    })?;
    Ok(())
}

/// A page of the providers that the caller may read.
pub fn list(
    sql: &mut impl Sql,
    listing: &Listing<ModelProvider>,
    page: &Request,
) -> Result<Vec<ModelProvider>> {
    let statement = list_sql!("model_providers/list").by(page.order);
    sql.fetch_all(
        statement,
        &[&listing.caller().tenant_id, &page.after, &page.rows()],
    )
}

/// The providers whose newest calls failed, of the newest calls of the tenant's runs since then. For whoever reads all runs of the
/// tenant; nothing for others. `is_bound`: what a caller may read is bounded by roles.
pub fn failing(
    sql: &mut impl Sql,
    caller: &Caller,
    is_bound: bool,
    since: OffsetDateTime,
) -> Result<Vec<Failing>> {
    let is_admin = !is_bound
        || caller.key.role == KeyRole::Admin
            && tenants::is_admin(sql, caller.tenant_id, caller.user_id)?.0;
    if !is_admin || caller.key.project_id.is_some() {
        return Ok(Vec::new());
    }
    let (low, _) = ids_between(Some(since), None);
    sql.fetch_all(
        sql!("model_providers/failing"),
        &[&caller.tenant_id, &low, &CALLS_LOOKED_AT],
    )
}
