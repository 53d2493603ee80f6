//! What a backup and a restore read of a database, and the mark of a restore.
//!
//! While the mark exists, no program uses the database (`migrations`). It is set before the first
//! change and removed after the last one. Not here: the dumps (`cli::backup`, `cli::restore`).

use super::{Columns, FromRow};
use crate::error::{Code, Error, Result};
use crate::{from_row, sql};
use postgres::{Client, GenericClient, IsolationLevel, Transaction};
use uuid::Uuid;

/// Any number, the same for every version of this program.
const LOCK: i64 = 0x6167_656e_745f_7273;
/// The first half of the lock by which a database is known again.
const PLACE: i32 = 0x6167_656e;

/// Tenants that are listed at most.
const TENANTS_MAX: i64 = 1_000;

/// A database, whoever uses it.
#[derive(Debug, Clone)]
pub struct Facts {
    /// `server_version_num`.
    pub server: i32,
    /// The same as its packagers write it.
    pub server_text: String,
    /// Its name.
    pub database: String,
    /// The schema that tables are made in.
    pub schema: String,
    /// Its encoding.
    pub encoding: String,
    /// A standby, or set to be read.
    pub read_only: bool,
    /// Whether this role may make tables.
    pub may_create: bool,
}

/// Somebody else who is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// The server's process.
    pub pid: i32,
    /// The role.
    pub role: String,
    /// What it calls itself; `?` where this role may not know.
    pub name: String,
    /// From where, if over a network.
    pub address: Option<String>,
}

/// How many locks the server has room for.
#[derive(Debug, Clone, Copy)]
pub struct LockRoom {
    /// `max_locks_per_transaction`.
    pub each: u64,
    /// Connections and prepared transactions, for each of which it has so many.
    pub holders: u64,
}

impl LockRoom {
    /// The value of `max_locks_per_transaction` that makes room for so many locks; none if there is room.
    pub fn wanted(self, locks: u64) -> Option<u64> {
        let is_enough = locks <= self.each.saturating_mul(self.holders);
        // A quarter more: tables have further relations for long values, and others hold locks as well.
        let ample = locks.saturating_add(locks / 4);
        (!is_enough).then(|| ample.div_ceil(self.holders.max(1)))
    }
}

from_row!(Other {
    pid,
    role,
    name,
    address
});

/// Looks at the database.
///
/// # Errors
/// It cannot be read; the role has no schema to make tables in.
pub fn facts(client: &mut impl GenericClient) -> Result<Facts> {
    let row = client.query_one(sql!("backups/facts"), &[])?;
    let schema: Option<String> = row.column("schema")?;
    Ok(Facts {
        server: row.column("server")?,
        server_text: row.column("server_text")?,
        database: row.column("database")?,
        schema: schema.ok_or_else(|| {
            Error::new(
                Code::InvalidRequest,
                "The database's role has no schema of its search_path to use.",
            )
        })?,
        encoding: row.column("encoding")?,
        read_only: row.column("read_only")?,
        may_create: row.column::<Option<bool>>("may_create")? == Some(true),
    })
}

/// Whether both are connected to one database, and make their tables in one schema of it.
///
/// The one takes a lock, and the other looks for it: locks are seen in their own database alone,
/// whatever name, address or pooler leads there.
///
/// # Errors
/// One of them cannot be read.
pub fn is_same_place(one: &mut impl GenericClient, other: &mut Client) -> Result<bool> {
    let mut held = one.transaction()?;
    let row = held.query_one(sql!("backups/take_place"), &[&PLACE])?;
    let process: i32 = row.column("process")?;
    let schema: Option<String> = row.column("schema")?;
    let row = other.query_one(sql!("backups/is_place_taken"), &[&PLACE, &process])?;
    let is_taken: bool = row.column("is_taken")?;
    let other_schema: Option<String> = row.column("schema")?;
    held.rollback()?;
    Ok(is_taken && schema == other_schema)
}

/// Whether the schema holds nothing but the mark of a restore and what extensions own.
///
/// # Errors
/// It cannot be read.
pub fn is_empty(client: &mut impl GenericClient) -> Result<bool> {
    client.query_one(sql!("backups/is_empty"), &[])?.only()
}

/// How many locks the server has room for.
///
/// # Errors
/// It cannot be read.
pub fn lock_room(client: &mut impl GenericClient) -> Result<LockRoom> {
    let row = client.query_one(sql!("backups/lock_room"), &[])?;
    let figure = |name: &str| -> Result<u64> {
        let value: i64 = row.column(name)?;
        Ok(u64::try_from(value).unwrap_or(0))
    };
    Ok(LockRoom {
        each: figure("each")?,
        holders: figure("holders")?,
    })
}

/// Who else is connected to the database, the first twenty.
///
/// # Errors
/// It cannot be read.
pub fn others(client: &mut impl GenericClient) -> Result<Vec<Other>> {
    let rows = client.query(sql!("backups/others"), &[])?;
    rows.iter().map(Other::from_row).collect()
}

/// Takes the database for one restore, for as long as the connection lives. False: another has it.
///
/// # Errors
/// It cannot be read.
pub fn hold(client: &mut Client) -> Result<bool> {
    client.query_one(sql!("backups/hold"), &[&LOCK])?.only()
}

/// Sets the mark.
///
/// # Errors
/// It cannot be written.
pub fn begin(client: &mut Client) -> Result<()> {
    client.execute(sql!("schema/begin_restore"), &[])?;
    Ok(())
}

/// Removes the mark.
///
/// # Errors
/// It cannot be written.
pub fn end(client: &mut Client) -> Result<()> {
    client.execute(sql!("schema/end_restore"), &[])?;
    Ok(())
}

/// Lets the server count what its planner goes by, however long that takes.
///
/// # Errors
/// It cannot be done.
pub fn analyze(client: &mut Client) -> Result<()> {
    client.batch_execute("set statement_timeout = 0; analyze; reset statement_timeout")?;
    Ok(())
}

/// The database as it is now, for as long as the transaction lives, and the name by which another
/// connection sees the same. It may be idle for as long as it wants.
///
/// # Errors
/// It cannot be read.
pub fn snapshot(client: &mut Client) -> Result<(Transaction<'_>, String)> {
    let begun = client.build_transaction();
    let begun = begun.isolation_level(IsolationLevel::RepeatableRead);
    let mut snapshot = begun.read_only(true).start()?;
    snapshot.execute(sql!("backups/idle_for_long"), &[])?;
    let name = snapshot.query_one(sql!("backups/export"), &[])?.only()?;
    Ok((snapshot, name))
}

/// How many versions of secrets there are. The table stands from migration `0006_secrets` on.
///
/// # Errors
/// It cannot be read.
pub fn secret_versions(client: &mut impl GenericClient) -> Result<i64> {
    client
        .query_one(sql!("backups/secret_versions"), &[])?
        .only()
}

/// The tenants, the oldest first. None: there are more than a thousand.
///
/// # Errors
/// It cannot be read.
pub fn tenants(client: &mut impl GenericClient) -> Result<Option<Vec<Uuid>>> {
    let rows = client.query(sql!("backups/tenants"), &[&(TENANTS_MAX + 1)])?;
    let is_all = rows.len() as i64 <= TENANTS_MAX;
    is_all
        .then(|| rows.iter().map(Columns::only).collect())
        .transpose()
}

/// The newest migration of the authorization server's own database; none where its tables are not.
///
/// # Errors
/// It cannot be read.
pub fn openfga_version(client: &mut Client) -> Result<Option<i64>> {
    let is_openfga = include_str!("../../sql/openfga/is_openfga.sql");
    if !client.query_one(is_openfga, &[])?.only::<bool>()? {
        return Ok(None);
    }
    let text = include_str!("../../sql/openfga/schema_version.sql");
    match client.query_one(text, &[]) {
        Ok(row) => row.only(),
        Err(error) if error.code() == Some(&postgres::error::SqlState::UNDEFINED_TABLE) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_locks_is_what_all_connections_have_together() {
        let room = LockRoom {
            each: 64,
            holders: 100,
        };
        assert_eq!(room.wanted(0), None);
        assert_eq!(room.wanted(6_400), None);
        assert_eq!(room.wanted(6_401), Some(81));
        assert_eq!(room.wanted(20_000), Some(250));
        // What it says to set is enough.
        for locks in [6_401, 7_777, 123_456] {
            let each = room.wanted(locks).unwrap();
            assert_eq!(LockRoom { each, ..room }.wanted(locks), None, "{locks}");
        }
    }
}
