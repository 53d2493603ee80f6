//! Stored secrets of tenants: names, times and sealed versions.
//!
//! Nothing here ever sees a value. Guarantees: a version's number is never reused while the secret
//! exists, and the two newest versions are kept.
//!
//! Not here: sealing and opening (`secrets`).

use super::page::{Binding, Order, Page, limit};
use super::tenants::Tenant;
use super::{Columns, FromRow, Sql, Tx, environments};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, May};
use crate::{from_row, list_sql, sql};
use postgres::{Client, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

const CURSOR_VERSION: u8 = 1;

/// Secrets of a tenant at most.
pub const SECRETS_MOST: i64 = 1_000;

// Specification, section 2.6.
/// Which secret.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct SecretRef {
    /// The environment that it belongs to.
    #[serde(rename = "envName")]
    pub environment: String,
    /// Its name in the environment.
    pub name: String,
}

impl SecretRef {
    /// From two columns that hold one, or neither.
    pub(super) fn maybe(environment: Option<String>, name: Option<String>) -> Option<Self> {
        let (environment, name) = environment.zip(name)?;
        Some(Self { environment, name })
    }
}

impl std::fmt::Display for SecretRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in the environment {}", self.name, self.environment)
    }
}

/// A secret without its value.
#[derive(Debug, Clone)]
pub struct Described {
    /// Which.
    pub at: SecretRef,
    /// The version that stands.
    pub version: i32,
    /// Who put it first.
    pub created_by: Option<Uuid>,
    /// When it was put first.
    pub created_at: OffsetDateTime,
    /// When it was put last.
    pub updated_at: OffsetDateTime,
    /// The versions that are kept, the newest first, with when each was put.
    pub versions: Vec<(i32, OffsetDateTime)>,
}

/// A version as it is stored. What is sealed is bound to the rest.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// Its number, from 1.
    pub version: i32,
    /// How it is sealed.
    pub format: i16,
    /// The nonce of the value's cipher.
    pub nonce: Vec<u8>,
    /// The value.
    pub ciphertext: Vec<u8>,
    /// The key that wrapped the data key, as its service names it.
    pub wrapping_key: String,
    /// The data key.
    pub wrapped_data_key: Vec<u8>,
    /// Who put it.
    pub created_by: Uuid,
    /// When it was put, in whole microseconds.
    pub created_at: OffsetDateTime,
}

/// A secret as it is stored.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The version that stands; none where there is no such secret.
    pub stands: Option<i32>,
    /// The versions that are kept, the newest first.
    pub versions: Vec<Sealed>,
}

/// A version with its place.
#[derive(Debug, Clone)]
pub struct Located {
    /// The tenant.
    pub tenant_id: Uuid,
    /// The secret.
    pub at: SecretRef,
    /// The version.
    pub sealed: Sealed,
}

/// Which page of secrets is asked for: by environment and name.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Of this environment alone.
    pub environment: Option<String>,
    /// The direction.
    pub order: Order,
    /// The secret after which the page begins.
    pub after: Option<SecretRef>,
    limit: u16,
    binding: Binding,
}

impl ListRequest {
    /// Reads the paging parameters: the first by name comes first unless asked otherwise.
    ///
    /// # Errors
    /// `invalid-request`, `invalid-cursor`, as every list.
    pub fn new(
        environment: Option<String>,
        cursor: Option<&str>,
        asked: Option<u16>,
        order: Option<Order>,
    ) -> Result<Self> {
        let order = order.unwrap_or(Order::Asc);
        let binding = Binding::new(&("secrets", &environment), order)?;
        let read = |cursor| {
            let content = binding.read(CURSOR_VERSION, cursor)?;
            let text = String::from_utf8(content).ok();
            let parts = text.as_deref().and_then(|text| text.split_once('/'));
            let (environment, name) = parts.ok_or_else(|| {
                Error::new(
                    Code::InvalidCursor,
                    "The cursor is damaged. Begin again without it.",
                )
            })?;
            Ok::<_, Error>(SecretRef {
                environment: environment.to_owned(),
                name: name.to_owned(),
            })
        };
        Ok(Self {
            after: cursor.map(read).transpose()?,
            environment,
            order,
            limit: limit(asked)?,
            binding,
        })
    }

    /// How many rows to ask for: one more than the page holds tells whether more follow.
    pub fn rows(&self) -> usize {
        usize::from(self.limit) + 1
    }

    /// The page from at most [`Self::rows`] rows.
    pub fn page<T>(&self, mut rows: Vec<Described>, show: impl Fn(Described) -> T) -> Page<T> {
        let has_more = rows.len() > usize::from(self.limit);
        rows.truncate(usize::from(self.limit));
        let next_cursor = rows.last().filter(|_| has_more).map(|last| {
            // Neither part can hold the stroke.
            let content = format!("{}/{}", last.at.environment, last.at.name);
            self.binding.cursor(CURSOR_VERSION, content.as_bytes())
        });
        Page {
            data: rows.into_iter().map(show).collect(),
            has_more,
            next_cursor,
        }
    }
}

impl FromRow for Described {
    fn from_row(row: &Row) -> Result<Self> {
        let versions: Option<Vec<i32>> = row.column("versions")?;
        let times: Option<Vec<OffsetDateTime>> = row.column("version_times")?;
        let (versions, times) = (versions.unwrap_or_default(), times.unwrap_or_default());
        Ok(Self {
            at: SecretRef::from_row(row)?,
            version: row.column("version")?,
            created_by: row.column("created_by")?,
            created_at: row.column("created_at")?,
            updated_at: row.column("updated_at")?,
            versions: versions.into_iter().zip(times).collect(),
        })
    }
}

from_row!(SecretRef { environment, name });

from_row!(Sealed {
    version,
    format,
    nonce,
    ciphertext,
    wrapping_key,
    wrapped_data_key,
    created_by,
    created_at
});

/// A secret as a row gives it: the version that stands, and arrays of the kept versions' parts.
pub(super) fn stored(row: &Row) -> Result<Stored> {
    let versions: Option<Vec<i32>> = row.column("versions")?;
    let formats: Option<Vec<i16>> = row.column("formats")?;
    let nonces: Option<Vec<Vec<u8>>> = row.column("nonces")?;
    let ciphertexts: Option<Vec<Vec<u8>>> = row.column("ciphertexts")?;
    let wrapping_keys: Option<Vec<String>> = row.column("wrapping_keys")?;
    let wrapped_data_keys: Option<Vec<Vec<u8>>> = row.column("wrapped_data_keys")?;
    let authors: Option<Vec<Uuid>> = row.column("created_by")?;
    let times: Option<Vec<OffsetDateTime>> = row.column("created_at")?;
    let values = nonces
        .into_iter()
        .flatten()
        .zip(ciphertexts.into_iter().flatten());
    let keys = wrapping_keys
        .into_iter()
        .flatten()
        .zip(wrapped_data_keys.into_iter().flatten());
    let put = authors
        .into_iter()
        .flatten()
        .zip(times.into_iter().flatten());
    let numbers = versions
        .into_iter()
        .flatten()
        .zip(formats.into_iter().flatten());
    let sealed = numbers.zip(values).zip(keys).zip(put).map(
        |((((version, format), (nonce, ciphertext)), (wrapping_key, wrapped_data_key)), put)| {
            Sealed {
                version,
                format,
                nonce,
                ciphertext,
                wrapping_key,
                wrapped_data_key,
                created_by: put.0,
                created_at: put.1,
            }
        },
    );
    Ok(Stored {
        stands: row.column("stands")?,
        versions: sealed.collect(),
    })
}

/// The secret of that name, without its value.
pub fn find(
    sql: &mut impl Sql,
    may: &impl May<Admin, Tenant>,
    at: &SecretRef,
) -> Result<Option<Described>> {
    sql.fetch_optional(
        sql!("secrets/find"),
        &[&may.tenant_id(), &at.environment, &at.name],
    )
}

/// A page of the tenant's secrets.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Admin, Tenant>,
    page: &ListRequest,
) -> Result<Vec<Described>> {
    let statement = list_sql!("secrets/list").by(page.order);
    let environment = page.after.as_ref().map(|after| &after.environment);
    let name = page.after.as_ref().map(|after| &after.name);
    let rows = i64::try_from(page.rows()).unwrap_or(i64::MAX);
    sql.fetch_all(
        statement,
        &[
            &may.tenant_id(),
            &page.environment,
            &environment,
            &name,
            &rows,
        ],
    )
}

/// A secret as it is stored.
pub fn read(sql: &mut impl Sql, tenant_id: Uuid, at: &SecretRef) -> Result<Stored> {
    let rows = sql.query(
        sql!("secrets/read"),
        &[&tenant_id, &at.environment, &at.name],
    )?;
    let Some(first) = rows.first() else {
        return Ok(Stored {
            stands: None,
            versions: Vec::new(),
        });
    };
    let stands = first.column("stands")?;
    let mut versions = Vec::new();
    for row in &rows {
        // A secret without a version has one row all the same.
        if row.column::<Option<i32>>("version")?.is_some() {
            versions.push(Sealed::from_row(row)?);
        }
    }
    Ok(Stored { stands, versions })
}

/// Writes a version, the one after `before`. False: another one was put since, or the secret was
/// deleted, and nothing is to be committed.
///
/// # Errors
/// `conflict`: the tenant has [`SECRETS_MOST`], and this is another one. `already-exists`, `conflict`: a variable has the name. `database-unavailable`.
pub fn put(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    at: &SecretRef,
    before: Option<i32>,
    new: &Sealed,
) -> Result<bool> {
    let (tenant_id, now) = (may.tenant_id(), new.created_at);
    let touched = match before {
        None => {
            // One new secret at a time, so that the bound holds.
            environments::check_secret(tx, tenant_id, place(at))?;
            let count = tx.query_one(sql!("secrets/count"), &[&tenant_id])?;
            if count.only::<i64>()? >= SECRETS_MOST {
                let message = format!("A tenant has {SECRETS_MOST} secrets at most. Delete one.");
                return Err(Error::new(Code::Conflict, message).detail("most", SECRETS_MOST));
            }
            tx.execute(
                sql!("secrets/insert"),
                &[&tenant_id, &at.environment, &at.name, &new.created_by, &now],
            )?
        }
        Some(before) => tx.execute(
            sql!("secrets/raise"),
            &[&tenant_id, &at.environment, &at.name, &before, &now],
        )?,
    };
    if touched == 0 {
        return Ok(false);
    }
    tx.execute(
        sql!("secrets/insert_version"),
        &[
            &tenant_id,
            &at.environment,
            &at.name,
            &new.version,
            &new.format,
            &new.nonce,
            &new.ciphertext,
            &new.wrapping_key,
            &new.wrapped_data_key,
            &new.created_by,
            &now,
        ],
    )?;
    tx.execute(
        sql!("secrets/keep_two"),
        &[&tenant_id, &at.environment, &at.name, &new.version],
    )?;
    Ok(true)
}

/// Where the secret stands, for what asks whether the name is free.
pub fn place(at: &SecretRef) -> environments::Place<'_> {
    environments::Place {
        environment: &at.environment,
        name: &at.name,
    }
}

/// Deletes it with its versions. False: there is none.
pub fn delete(sql: &mut impl Sql, may: &impl May<Admin, Tenant>, at: &SecretRef) -> Result<bool> {
    let touched = sql.execute(
        sql!("secrets/delete"),
        &[&may.tenant_id(), &at.environment, &at.name],
    )?;
    Ok(touched > 0)
}

/// Versions of all tenants after this one in the order of their places: for the operator, who wraps
/// their keys anew.
pub fn versions_after(
    sql: &mut impl Sql,
    after: Option<&Located>,
    limit: i64,
) -> Result<Vec<Located>> {
    let (tenant_id, environment, name, version) = match after {
        Some(last) => (
            last.tenant_id,
            last.at.environment.as_str(),
            last.at.name.as_str(),
            last.sealed.version,
        ),
        None => (Uuid::nil(), "", "", 0),
    };
    sql.fetch_all(
        sql!("secrets/versions_after"),
        &[&tenant_id, &environment, &name, &version, &limit],
    )
}

/// The version that was put last, of all tenants: for the operator, who tries their keys on it. The
/// schema is the program's.
pub fn newest(client: &mut Client) -> Result<Option<Located>> {
    let row = client.query_opt(sql!("secrets/newest"), &[])?;
    row.as_ref().map(Located::from_row).transpose()
}

impl FromRow for Located {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            tenant_id: row.column("tenant_id")?,
            at: SecretRef::from_row(row)?,
            sealed: Sealed::from_row(row)?,
        })
    }
}

/// Puts a data key that was wrapped anew in its version's row. False: the row is no longer as it was.
pub fn wrap(
    sql: &mut impl Sql,
    placed: &Located,
    wrapping_key: &str,
    wrapped_data_key: &[u8],
    now: OffsetDateTime,
) -> Result<bool> {
    let touched = sql.execute(
        sql!("secrets/wrap"),
        &[
            &placed.tenant_id,
            &placed.at.environment,
            &placed.at.name,
            &placed.sealed.version,
            &placed.sealed.wrapped_data_key,
            &wrapping_key,
            &wrapped_data_key,
            &now,
        ],
    )?;
    Ok(touched > 0)
}
