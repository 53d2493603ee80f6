//! The operator's view of the database: the role, its privileges, free capacity. It changes
//! nothing.
//!
//! Each function asks one question on its own connection outside the pool, so one failure does not
//! affect the others. They read across tenants and are for the operator only.
//!
//! Not here: the schema and its migrations (`migrations`), and the interpretation of the answers
//! (`cli`).

use super::authz::TenantStore;
use super::{Columns, FromRow};
use crate::error::Result;
use crate::ids;
use crate::sql;
use postgres::Client;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// Names that are listed at most.
const LISTED: i64 = 20;

/// Untold permissions that are counted at most.
const UNTOLD_MAX: i64 = 100_000;

/// How many connections there may be, and are.
#[derive(Debug)]
pub struct Connections {
    /// Of the server, for everybody.
    pub max: i32,
    /// Of these, kept for superusers and other privileged roles.
    pub reserved: i32,
    /// Open ones of all clients, this one not counted.
    pub open: i32,
    /// Of these, ones of this program on this database.
    pub ours: i32,
    /// Of our role at most, if it has a limit.
    pub role_max: Option<i32>,
}

/// Where a server keeps its data.
#[derive(Debug)]
pub struct Data {
    /// The directory, if our role may know it.
    pub directory: Option<String>,
    /// Whether that is on this host.
    pub is_local: bool,
}

/// The server's clock.
pub fn clock(client: &mut Client) -> Result<OffsetDateTime> {
    client.query_one(sql!("health/clock"), &[])?.only()
}

/// Connections that there may be, and are.
pub fn connections(client: &mut Client) -> Result<Connections> {
    let row = client.query_one(sql!("health/connections"), &[])?;
    let role_max: Option<i32> = row.column("role_max")?;
    Ok(Connections {
        max: row.column("max")?,
        reserved: row.column("reserved")?,
        open: row.column("open")?,
        ours: row.column("ours")?,
        role_max: role_max.filter(|limit| *limit >= 0),
    })
}

/// Where the server keeps its data.
pub fn data(client: &mut Client) -> Result<Data> {
    let row = client.query_one(sql!("health/data"), &[])?;
    Ok(Data {
        directory: row.column("directory")?,
        is_local: row.column("is_local")?,
    })
}

/// The oldest tenant, and whether this one is there.
pub fn tenant(client: &mut Client, tenant_id: Option<Uuid>) -> Result<(Option<Uuid>, bool)> {
    let row = client.query_one(sql!("health/tenant"), &[&tenant_id])?;
    Ok((row.column("oldest")?, row.column("is_there")?))
}

/// Tables, 20 at most, that our role may not both read and write.
pub fn tables_without_rights(client: &mut Client) -> Result<Vec<String>> {
    let rows = client.query(sql!("health/tables_without_rights"), &[&LISTED])?;
    rows.iter().map(Columns::only).collect()
}

/// Indexes, 20 at most, that a broken build left behind, by their quoted names.
pub fn invalid_indexes(client: &mut Client) -> Result<Vec<String>> {
    let rows = client.query(sql!("health/invalid_indexes"), &[&LISTED])?;
    rows.iter().map(Columns::only).collect()
}

/// Whether there is an index of this name.
pub fn has_index(client: &mut Client, name: &str) -> Result<bool> {
    client.query_one(sql!("health/has_index"), &[&name])?.only()
}

/// The stores of the first tenants.
pub fn tenant_stores(client: &mut Client) -> Result<Vec<(Uuid, TenantStore)>> {
    let rows = client.query(sql!("health/tenant_stores"), &[&LISTED])?;
    rows.iter()
        .map(|row| Ok((row.column("tenant_id")?, TenantStore::from_row(row)?)))
        .collect()
}

/// How many tenants have no store.
pub fn storeless(client: &mut Client) -> Result<i64> {
    client.query_one(sql!("health/storeless"), &[])?.only()
}

/// How many objects, 100,000 at most, the authorization server was not told of yet.
pub fn untold(client: &mut Client) -> Result<i64> {
    client
        .query_one(sql!("health/untold"), &[&UNTOLD_MAX])?
        .only()
}

/// Runs under way, 20 at most, that nothing will carry on, by tenant and id. A job that is due later than `grace` from now
/// counts as nothing.
pub fn stranded_runs(client: &mut Client, grace: Duration) -> Result<Vec<(Uuid, Uuid)>> {
    let grace_ms = i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
    let rows = client.query(sql!("health/stranded_runs"), &[&LISTED, &grace_ms])?;
    rows.iter()
        .map(|row| Ok((row.try_get("tenant_id")?, row.try_get("run_id")?)))
        .collect()
}

/// Approvals, 20 at most, that wait beyond their time and that nothing will close, by tenant and id. `grace` as above, also
/// for their time.
pub fn overdue_approvals(client: &mut Client, grace: Duration) -> Result<Vec<(Uuid, Uuid)>> {
    let grace_ms = i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
    let rows = client.query(sql!("health/overdue_approvals"), &[&LISTED, &grace_ms])?;
    rows.iter()
        .map(|row| Ok((row.column("tenant_id")?, row.column("approval_id")?)))
        .collect()
}

/// Reviewer roles, 20 at most, for which approvals wait that nobody may decide, by tenant and role, with how many wait.
pub fn undecidable_approvals(client: &mut Client) -> Result<Vec<(Uuid, String, i64)>> {
    let rows = client.query(sql!("health/undecidable_approvals"), &[&LISTED])?;
    let each = rows.iter().map(|row| {
        Ok((
            row.column("tenant_id")?,
            row.column("required_role")?,
            row.column("waiting")?,
        ))
    });
    each.collect()
}

/// How many webhook endpoints are registered.
pub fn webhook_endpoints(client: &mut Client) -> Result<i64> {
    client
        .query_one(sql!("health/webhook_endpoints"), &[])?
        .only()
}

/// An endpoint whose newest attempt failed.
#[derive(Debug, Clone)]
pub struct FailingEndpoint {
    /// Whose.
    pub tenant_id: Uuid,
    /// Which.
    pub endpoint_id: Uuid,
    /// The receiver.
    pub url: String,
    /// The newest success.
    pub last_delivered_at: Option<OffsetDateTime>,
    /// Why the newest attempt failed.
    pub last_error: Option<String>,
    /// What the receiver answered with.
    pub last_status: Option<i16>,
}

/// Webhook endpoints, 20 at most, whose newest attempt failed: those without a success for the longest time first.
pub fn failing_webhook_endpoints(client: &mut Client) -> Result<Vec<FailingEndpoint>> {
    let rows = client.query(sql!("health/failing_webhook_endpoints"), &[&LISTED])?;
    let each = rows.iter().map(|row| {
        Ok(FailingEndpoint {
            tenant_id: row.column("tenant_id")?,
            endpoint_id: row.column("endpoint_id")?,
            url: row.column("url")?,
            last_delivered_at: row.column("last_delivered_at")?,
            last_error: row.column("last_error")?,
            last_status: row.column("last_status")?,
        })
    });
    each.collect()
}

/// Whether a conversation was to be erased before a time and is still there.
pub fn has_unerased_conversation(client: &mut Client, before: OffsetDateTime) -> Result<bool> {
    client
        .query_one(sql!("health/has_unerased_conversation"), &[&before])?
        .only()
}

/// Whether a run that ended before a time still has what it was given, said and answered.
pub fn has_unerased_run(client: &mut Client, before: OffsetDateTime) -> Result<bool> {
    let first = ids::first_of(before);
    client
        .query_one(sql!("health/has_unerased_run"), &[&first, &before])?
        .only()
}
