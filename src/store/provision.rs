//! Creates roles and databases over a superuser's connection, only for `agent-runtime setup`.
//!
//! Guarantees: the server quotes names (`format` with `%I`), so any name is possible. Nothing that
//! exists is dropped, taken over, or given another owner.
//!
//! Not here: which roles and databases there should be (`cli::setup`), and the schema
//! (`migrations`).

use super::{Columns, FromRow};
use crate::error::{Code, Error, Result};
use crate::{from_row, sql};
use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};
use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

/// Orders a database's texts by their characters' numbers: no upgrade of the C library changes it.
const LOCALES: [&str; 2] = ["C.UTF-8", "C"];

/// The server, as its superuser finds it.
#[derive(Debug)]
pub struct Server {
    /// `server_version_num`.
    pub number: i32,
    /// Its version, for people.
    pub version: String,
    /// Whether the role may make roles and databases.
    pub may_make: bool,
}

/// A role that stands.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    /// It may log in.
    pub can_login: bool,
    /// It may do anything.
    pub is_superuser: bool,
}

/// A database that stands.
#[derive(Debug)]
pub struct Database {
    /// The role that owns it.
    pub owner: String,
    /// Its encoding, `UTF8` wanted.
    pub encoding: String,
}

/// What a column holds.
#[derive(Debug, Default)]
pub struct Column {
    /// How many rows.
    pub rows: u64,
    /// The first of its values.
    pub first: Vec<String>,
}

from_row!(Role {
    can_login,
    is_superuser
});
from_row!(Database { owner, encoding });

/// Connects to a database over a socket's directory.
///
/// # Errors
/// `database-unavailable`: no server listens there, or it does not know the role.
pub fn connect(socket: &Path, port: u16, role: &str, database: &str) -> Result<Client> {
    let mut config = Config::new();
    config
        .host_path(socket)
        .port(port)
        .user(role)
        .dbname(database)
        .application_name("agent-runtime setup")
        .connect_timeout(Duration::from_secs(5))
        // The owner of a database may have set another path for it.
        .options("-c statement_timeout=60000 -c lock_timeout=30000 -c search_path=pg_catalog");
    config.connect(NoTls).map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let why = cause.unwrap_or_else(|| error.to_string());
        Error::new(
            Code::DatabaseUnavailable,
            format!(
                "PostgreSQL cannot be used as {role} over {} (port {port}): {why}.",
                socket.display()
            ),
        )
    })
}

/// What the server is.
pub fn server(client: &mut Client) -> Result<Server> {
    let row = client.query_one(sql!("provision/server"), &[])?;
    Ok(Server {
        number: row.column("number")?,
        version: row.column("version")?,
        may_make: row.column("may_make")?,
    })
}

/// The role of this name, if it stands.
pub fn role(client: &mut Client, name: &str) -> Result<Option<Role>> {
    let row = client.query_opt(sql!("provision/role"), &[&name])?;
    row.as_ref().map(Role::from_row).transpose()
}

/// Makes a role that may log in and has no password.
///
/// # Errors
/// `database-unavailable`; `internal`: the server refuses.
pub fn create_role(client: &mut Client, name: &str) -> Result<()> {
    let statement: String = client
        .query_one(sql!("provision/create_role"), &[&name])?
        .only()?;
    Ok(client.batch_execute(&statement)?)
}

/// Lets a role log in.
///
/// # Errors
/// As for [`create_role`].
pub fn allow_login(client: &mut Client, name: &str) -> Result<()> {
    let statement: String = client
        .query_one(sql!("provision/allow_login"), &[&name])?
        .only()?;
    Ok(client.batch_execute(&statement)?)
}

/// The database of this name, if it stands.
pub fn database(client: &mut Client, name: &str) -> Result<Option<Database>> {
    let row = client.query_opt(sql!("provision/database"), &[&name])?;
    row.as_ref().map(Database::from_row).transpose()
}

/// Makes a database in UTF-8 that its owner alone can use.
///
/// # Errors
/// As for [`create_role`].
pub fn create_database(client: &mut Client, name: &str, owner: &str) -> Result<()> {
    let mut refusal = None;
    for locale in LOCALES {
        let row = client.query_one(sql!("provision/create_database"), &[&name, &owner, &locale])?;
        match client.batch_execute(row.only()?) {
            Ok(()) => return close(client, name),
            // The C library knows no such locale.
            Err(error) if error.code() == Some(&SqlState::WRONG_OBJECT_TYPE) => {
                refusal = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(refusal.map_or_else(|| Error::internal("no locale"), Error::from))
}

fn close(client: &mut Client, name: &str) -> Result<()> {
    let statement: String = client
        .query_one(sql!("provision/close_database"), &[&name])?
        .only()?;
    Ok(client.batch_execute(&statement)?)
}

/// What a column of numbers or ids holds, in every table of that name of the client's database; nothing
/// where there is none. No code of the table's owner is run.
///
/// # Errors
/// `database-unavailable`; `internal`: the server refuses.
pub fn column(client: &mut Client, table: &str, column: &str, most: usize) -> Result<Column> {
    let mut found = Column::default();
    for row in client.query(sql!("provision/copy_column"), &[&table, &column])? {
        let statement: String = row.only()?;
        for line in client.copy_out(&statement)?.lines() {
            let value = line.map_err(|error| Error::internal(error.to_string()))?;
            found.rows += 1;
            if found.first.len() < most {
                found.first.push(value);
            }
        }
    }
    Ok(found)
}

/// Whether a role has the rights of another, and acts as that one in a database.
///
/// # Errors
/// `database-unavailable`; `internal`: one of them does not stand.
pub fn is_admitted(client: &mut Client, role: &str, database: &str, of: &str) -> Result<bool> {
    let acts = client.query_one(sql!("provision/acts_as"), &[&role, &database, &of])?;
    Ok(is_member(client, role, of)? && acts.only()?)
}

/// Whether a role has the rights of another.
///
/// # Errors
/// As for [`is_admitted`].
pub fn is_member(client: &mut Client, role: &str, of: &str) -> Result<bool> {
    client
        .query_one(sql!("provision/is_member"), &[&role, &of])?
        .only()
}

/// Gives a role the rights of another.
///
/// # Errors
/// As for [`create_role`].
pub fn make_member(client: &mut Client, role: &str, of: &str) -> Result<()> {
    let grant = client.query_one(sql!("provision/admit"), &[&of, &role])?;
    Ok(client.batch_execute(grant.only()?)?)
}

/// Gives a role the rights of another, as which it acts in a database from then on: what it makes there
/// is the other's.
///
/// # Errors
/// As for [`create_role`].
pub fn admit(client: &mut Client, role: &str, database: &str, of: &str) -> Result<()> {
    make_member(client, role, of)?;
    let act = client.query_one(sql!("provision/act_as"), &[&role, &database, &of])?;
    Ok(client.batch_execute(act.only()?)?)
}
