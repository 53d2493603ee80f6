//! Idempotency keys of requests: a repetition creates nothing new.

use crate::error::{Code, Error, Result};
use crate::sql;
use crate::store::{Columns, Sql, on_violation};
use postgres::error::SqlState;
use time::OffsetDateTime;
use uuid::Uuid;

/// A request that names itself.
#[derive(Debug, Clone)]
pub struct RequestKey {
    /// The caller.
    pub principal: String,
    /// The route.
    pub route: String,
    /// The caller's own key.
    pub key: String,
    /// SHA-256 of the request's body.
    pub body_digest: [u8; 32],
}

/// Keeps a request's key beside the object that it makes, in the transaction that makes it. A
/// concurrent request of the same key waits here until that transaction ends, as long as statements
/// wait for locks. `Some` is the object that an earlier request made.
///
/// # Errors
/// `idempotency-mismatch` when the earlier request had another body, `idempotency-in-flight` when it
/// did not end in time.
pub fn remember_key(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    request: &RequestKey,
    object_id: Uuid,
    now: OffsetDateTime,
) -> Result<Option<Uuid>> {
    let digest = request.body_digest.as_slice();
    let (principal, route, key) = (&request.principal, &request.route, &request.key);
    let added = sql.execute(
        sql!("runs/remember_key"),
        &[&tenant_id, principal, route, key, &digest, &object_id, &now],
    );
    let added = on_violation(added, &SqlState::LOCK_NOT_AVAILABLE, || {
        Error::new(
            Code::IdempotencyInFlight,
            "A request with this Idempotency-Key is still being worked on. Repeat this one shortly.",
        )
    })?;
    if added == 1 {
        return Ok(None);
    }
    let row = sql.query_one(sql!("runs/find_key"), &[&tenant_id, principal, route, key])?;
    if row.column::<&[u8]>("body_digest")? != digest {
        return Err(Error::new(
            Code::IdempotencyMismatch,
            "This Idempotency-Key was used with another body. Use a new key for a new request.",
        ));
    }
    Ok(Some(row.column("object_id")?))
}

/// Deletes at most `limit` keys older than `before`; says how many.
pub fn forget_keys(sql: &mut impl Sql, before: OffsetDateTime, limit: i64) -> Result<u64> {
    sql.execute(sql!("runs/forget_keys"), &[&before, &limit])
}
