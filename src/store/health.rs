//! What an operator is told of the database's health: who we are in it, what we may, how much room
//! there is. Nothing is changed.
//!
//! Each function asks one question on a connection of its own, outside the pool, so that a question that
//! fails leaves the others standing. They look across tenants and are for the operator alone.
//!
//! Not here: the schema and its migrations (`migrations`), and what is said of the answers (`cli`).

use super::authz::Standing;
use crate::error::Result;
use crate::sql;
use postgres::Client;
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
///
/// # Errors
/// `database-unavailable`.
pub fn clock(client: &mut Client) -> Result<OffsetDateTime> {
    Ok(client.query_one(sql!("health/clock"), &[])?.get(0))
}

/// Connections that there may be, and are.
///
/// # Errors
/// `database-unavailable`.
pub fn connections(client: &mut Client) -> Result<Connections> {
    let row = client.query_one(sql!("health/connections"), &[])?;
    let role_max: Option<i32> = row.get(4);
    Ok(Connections {
        max: row.get(0),
        reserved: row.get(1),
        open: row.get(2),
        ours: row.get(3),
        role_max: role_max.filter(|limit| *limit >= 0),
    })
}

/// Where the server keeps its data.
///
/// # Errors
/// `database-unavailable`.
pub fn data(client: &mut Client) -> Result<Data> {
    let row = client.query_one(sql!("health/data"), &[])?;
    Ok(Data {
        directory: row.get(0),
        is_local: row.get(1),
    })
}

/// Tables, 20 at most, that our role may not both read and write.
///
/// # Errors
/// `database-unavailable`.
pub fn tables_without_rights(client: &mut Client) -> Result<Vec<String>> {
    let rows = client.query(sql!("health/tables_without_rights"), &[&LISTED])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Indexes, 20 at most, that a broken build left behind, by their quoted names.
///
/// # Errors
/// `database-unavailable`.
pub fn invalid_indexes(client: &mut Client) -> Result<Vec<String>> {
    let rows = client.query(sql!("health/invalid_indexes"), &[&LISTED])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Whether there is an index of this name.
///
/// # Errors
/// `database-unavailable`.
pub fn has_index(client: &mut Client, name: &str) -> Result<bool> {
    Ok(client.query_one(sql!("health/has_index"), &[&name])?.get(0))
}

/// The stores of the first tenants.
///
/// # Errors
/// `database-unavailable`.
pub fn standings(client: &mut Client) -> Result<Vec<(Uuid, Standing)>> {
    let rows = client.query(sql!("health/standings"), &[&LISTED])?;
    let standing = |row: &postgres::Row| Standing {
        store_id: row.get(1),
        model_id: row.get(2),
        model_version: row.get(3),
        model_digest: row.get(4),
    };
    Ok(rows.iter().map(|row| (row.get(0), standing(row))).collect())
}

/// How many tenants have no store.
///
/// # Errors
/// `database-unavailable`.
pub fn storeless(client: &mut Client) -> Result<i64> {
    Ok(client.query_one(sql!("health/storeless"), &[])?.get(0))
}

/// How many objects, 100,000 at most, the authorization server was not told of yet.
///
/// # Errors
/// `database-unavailable`.
pub fn untold(client: &mut Client) -> Result<i64> {
    Ok(client
        .query_one(sql!("health/untold"), &[&UNTOLD_MAX])?
        .get(0))
}

/// How many webhook endpoints are registered.
///
/// # Errors
/// `database-unavailable`.
pub fn webhook_endpoints(client: &mut Client) -> Result<i64> {
    Ok(client
        .query_one(sql!("health/webhook_endpoints"), &[])?
        .get(0))
}
