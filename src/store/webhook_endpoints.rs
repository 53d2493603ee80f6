//! Webhook endpoints of a tenant: their URLs, their events, and the names of their signing secrets.
//!
//! Only the name of a secret is stored, never a value. For this file an unregistered endpoint does
//! not exist.
//!
//! Not here: deliveries (`webhook_deliveries`), and unregistering, which ends them.

use super::page::Request;
use super::secrets::SecretRef;
use super::tenants::Tenant;
use super::{Columns, Find, Finding, FromRow, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::ids::whole_ms;
use crate::proof::{Admin, Caller, Kind, May, Scope};
use crate::{find_sql, from_row, list_sql, sql};
use postgres::Row;
use postgres::error::SqlState;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// Endpoints of a tenant at most.
pub const ENDPOINTS_MOST: i64 = 1_000;

/// Deliveries of an endpoint are counted up to this many while they wait.
pub const WAITING_COUNTED: i64 = 1_000;

/// Deliveries of an endpoint that may wait while more are asked for.
pub const WAITING_MOST: i64 = 5_000;

/// A webhook endpoint.
#[derive(Debug, Clone)]
pub struct WebhookEndpoint {
    /// Its id.
    pub endpoint_id: Uuid,
    /// The receiver.
    pub url: String,
    /// The kinds of events that it takes.
    pub events: Vec<String>,
    /// The secret that signs.
    pub secret: SecretRef,
    /// The secret that signs beside it, and until when.
    pub previous_secret: Option<(SecretRef, OffsetDateTime)>,
    /// Which events of those kinds; none: every one.
    pub filter: Option<Filter>,
    /// Who registered it.
    pub created_by: Uuid,
    /// When it was registered.
    pub created_at: OffsetDateTime,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
    /// Deliveries that were delivered.
    pub delivered: i64,
    /// Deliveries that failed for good.
    pub failed: i64,
    /// Deliveries that wait or are under way, counted up to [`WAITING_COUNTED`].
    pub being_sent: i64,
    /// The newest attempt failed.
    pub is_failing: bool,
    /// When an attempt last succeeded.
    pub last_delivered_at: Option<OffsetDateTime>,
    /// When an attempt last failed.
    pub last_failed_at: Option<OffsetDateTime>,
    /// Why it failed.
    pub last_error: Option<String>,
    /// The status that it failed with.
    pub last_status: Option<i16>,
}

/// Which events an endpoint takes (specification section 6.3). What is left out filters nothing, but
/// dry runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Runs of these flows alone.
    pub flow_ids: Option<Vec<String>>,
    /// Of this project alone.
    pub project_id: Option<Uuid>,
    /// Dry runs, too.
    pub include_dry_runs: Option<bool>,
}

/// What is said of an endpoint when it is registered or changed.
#[derive(Debug, Clone)]
pub struct About {
    /// See [`WebhookEndpoint`].
    pub url: String,
    /// See [`WebhookEndpoint`].
    pub events: Vec<String>,
    /// See [`WebhookEndpoint`].
    pub secret: SecretRef,
    /// See [`WebhookEndpoint`].
    pub filter: Option<Filter>,
}

impl From<WebhookEndpoint> for About {
    fn from(endpoint: WebhookEndpoint) -> Self {
        Self {
            url: endpoint.url,
            events: endpoint.events,
            secret: endpoint.secret,
            filter: endpoint.filter,
        }
    }
}

impl Kind for WebhookEndpoint {
    const NAME: &'static str = "webhook-endpoint";
    fn id(&self) -> Uuid {
        self.endpoint_id
    }
    fn scope(&self) -> Scope {
        Scope::OnTenant
    }
}

impl Find for WebhookEndpoint {
    const FINDING: Finding = find_sql!("webhook_endpoints/find");
    fn read(row: &Row) -> Result<Option<Self>> {
        Self::from_row(row).map(Some)
    }
}

/// An endpoint that is to end: one that is registered, or was, and to which an attempt may still be in
/// flight. So whoever asks again for its end is not told that it is gone before that is true.
#[derive(Debug)]
pub struct Ending {
    endpoint_id: Uuid,
}

impl Kind for Ending {
    const NAME: &'static str = WebhookEndpoint::NAME;
    fn id(&self) -> Uuid {
        self.endpoint_id
    }
    fn scope(&self) -> Scope {
        Scope::OnTenant
    }
}

impl Find for Ending {
    const FINDING: Finding = find_sql!("webhook_endpoints/find_ending");
    fn read(row: &Row) -> Result<Option<Self>> {
        let endpoint_id = row.column("endpoint_id")?;
        Ok(Some(Self { endpoint_id }))
    }
}

impl FromRow for WebhookEndpoint {
    fn from_row(row: &Row) -> Result<Self> {
        let previous = SecretRef::maybe(
            row.column("previous_environment")?,
            row.column("previous_name")?,
        );
        let has_filter: bool = row.column("has_filter")?;
        Ok(Self {
            endpoint_id: row.column("endpoint_id")?,
            url: row.column("url")?,
            events: row.column("events")?,
            secret: SecretRef {
                environment: row.column("secret_environment")?,
                name: row.column("secret_name")?,
            },
            previous_secret: previous.zip(row.column("previous_until")?),
            filter: has_filter.then(|| Filter::from_row(row)).transpose()?,
            created_by: row.column("created_by")?,
            created_at: row.column("created_at")?,
            updated_at: row.column("updated_at")?,
            delivered: row.column("delivered")?,
            failed: row.column("failed")?,
            is_failing: row.column("is_failing")?,
            last_delivered_at: row.column("last_delivered_at")?,
            last_failed_at: row.column("last_failed_at")?,
            last_error: row.column("last_error")?,
            last_status: row.column("last_status")?,
            being_sent: row.column("being_sent")?,
        })
    }
}

from_row!(Filter {
    flow_ids,
    project_id,
    include_dry_runs
});

fn found(tx: &mut Tx<'_>, tenant_id: Uuid, id: Uuid) -> Result<WebhookEndpoint> {
    WebhookEndpoint::find(tx, tenant_id, id)?
        .ok_or_else(|| Error::not_found(WebhookEndpoint::NAME, id))
}

/// Only a filter names what may not be there: everything else was found with the caller.
fn no_such_project(about: &About) -> Error {
    let project_id = about.filter.as_ref().and_then(|filter| filter.project_id);
    let path = "$.filter.projectId";
    Error::new(
        Code::InvalidBody,
        format!(
            "The body's {path}: there is no project {} here.",
            project_id.unwrap_or_default()
        ),
    )
    .detail("path", path)
    .detail("expected", "a project of the tenant")
}

/// Registers an endpoint.
///
/// # Errors
/// `conflict`: the tenant has [`ENDPOINTS_MOST`]. `invalid-body`: the filter's project is not there.
/// `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    creator: &Caller,
    endpoint_id: Uuid,
    about: &About,
    now: OffsetDateTime,
) -> Result<WebhookEndpoint> {
    let tenant_id = may.tenant_id();
    tx.execute(sql!("webhook_endpoints/lock_tenant"), &[&tenant_id])?;
    let count = tx.query_one(sql!("webhook_endpoints/count"), &[&tenant_id])?;
    if count.only::<i64>()? >= ENDPOINTS_MOST {
        let message =
            format!("A tenant has {ENDPOINTS_MOST} webhook endpoints at most. Unregister one.");
        return Err(Error::new(Code::Conflict, message).detail("most", ENDPOINTS_MOST));
    }
    let filter = about.filter.clone().unwrap_or_default();
    let inserted = tx.execute(
        sql!("webhook_endpoints/insert"),
        &[
            &tenant_id,
            &endpoint_id,
            &about.url,
            &about.events,
            &about.secret.environment,
            &about.secret.name,
            &about.filter.is_some(),
            &filter.flow_ids,
            &filter.project_id,
            &filter.include_dry_runs,
            &creator.user_id,
            &now,
        ],
    );
    on_violation(inserted, &SqlState::FOREIGN_KEY_VIOLATION, || {
        no_such_project(about)
    })?;
    found(tx, tenant_id, endpoint_id)
}

/// The endpoint as it is now, kept from other changes until the transaction ends.
///
/// # Errors
/// `not-found`: it was unregistered since. `database-unavailable`.
pub fn lock(tx: &mut Tx<'_>, may: &impl May<Admin, WebhookEndpoint>) -> Result<WebhookEndpoint> {
    let (tenant_id, id) = (may.tenant_id(), may.object_id());
    tx.execute(sql!("webhook_endpoints/lock"), &[&tenant_id, &id])?;
    found(tx, tenant_id, id)
}

/// Sees to it that few enough of its deliveries wait for a person to ask for more.
///
/// # Errors
/// `conflict`: [`WAITING_MOST`] wait. `database-unavailable`.
pub fn has_room(sql: &mut impl Sql, may: &impl May<Admin, WebhookEndpoint>) -> Result<()> {
    let ids = (may.tenant_id(), may.object_id());
    let waiting = sql!("webhook_endpoints/waiting");
    let waiting = sql.query_one(waiting, &[&ids.0, &ids.1, &WAITING_MOST])?;
    if waiting.only::<i64>()? < WAITING_MOST {
        return Ok(());
    }
    let message = format!(
        "{WAITING_MOST} deliveries to this endpoint wait already. Try again when some have gone out."
    );
    Err(Error::new(Code::Conflict, message).detail("most", WAITING_MOST))
}

/// Changes it. Another secret than before is signed with beside the earlier one for a day.
///
/// # Errors
/// `not-found`: it was unregistered since. `invalid-body`: the filter's project is not there.
/// `database-unavailable`.
pub fn update(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, WebhookEndpoint>,
    about: &About,
    now: OffsetDateTime,
) -> Result<WebhookEndpoint> {
    let (tenant_id, id) = (may.tenant_id(), may.object_id());
    let filter = about.filter.clone().unwrap_or_default();
    let updated = tx.execute(
        sql!("webhook_endpoints/update"),
        &[
            &tenant_id,
            &id,
            &about.url,
            &about.events,
            &about.secret.environment,
            &about.secret.name,
            &about.filter.is_some(),
            &filter.flow_ids,
            &filter.project_id,
            &filter.include_dry_runs,
            &now,
        ],
    );
    on_violation(updated, &SqlState::FOREIGN_KEY_VIOLATION, || {
        no_such_project(about)
    })?;
    found(tx, tenant_id, id)
}

/// A page of the tenant's endpoints.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Admin, Tenant>,
    page: &Request,
) -> Result<Vec<WebhookEndpoint>> {
    let statement = list_sql!("webhook_endpoints/list").by(page.order);
    sql.fetch_all(statement, &[&may.tenant_id(), &page.after, &page.rows()])
}

/// How many endpoints, of all tenants, have had no success and a delivery that failed for as long as this.
pub fn count_failing(sql: &mut impl Sql, since: Duration) -> Result<u64> {
    let row = sql.query_one(sql!("webhook_endpoints/count_failing"), &[&whole_ms(since)])?;
    let count: i64 = row.only()?;
    Ok(u64::try_from(count).unwrap_or(0))
}
