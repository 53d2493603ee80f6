//! The schema, forward-only. An embedding service runs [`MIGRATIONS`] inside its own; others call [`migrate`].

use crate::Result;
use postgres::Client;
use postgres::types::Type;

/// Name and SQL of each step, in order. Tables, sequences and functions stand in the connection's current schema and
/// begin with `job_`. Each step may run in a transaction.
pub const MIGRATIONS: &[(&str, &str)] = &[
    ("job_0001_tables", include_str!("../sql/0001_tables.sql")),
    ("job_0002_enqueue", include_str!("../sql/0002_enqueue.sql")),
    ("job_0003_claim", include_str!("../sql/0003_claim.sql")),
    ("job_0004_settle", include_str!("../sql/0004_settle.sql")),
    ("job_0005_serial", include_str!("../sql/0005_serial.sql")),
    (
        "job_0006_kept_plans",
        include_str!("../sql/0006_kept_plans.sql"),
    ),
    (
        "job_0007_leases_ahead",
        include_str!("../sql/0007_leases_ahead.sql"),
    ),
    ("job_0008_one_job", include_str!("../sql/0008_one_job.sql")),
    (
        "job_0009_lean_claims",
        include_str!("../sql/0009_lean_claims.sql"),
    ),
    (
        "job_0010_sets_of_keys",
        include_str!("../sql/0010_sets_of_keys.sql"),
    ),
    (
        "job_0011_one_enqueue",
        include_str!("../sql/0011_one_enqueue.sql"),
    ),
    (
        "job_0012_named_rows",
        include_str!("../sql/0012_named_rows.sql"),
    ),
    (
        "job_0013_standing_leases",
        include_str!("../sql/0013_standing_leases.sql"),
    ),
    (
        "job_0014_claimed_at_once",
        include_str!("../sql/0014_claimed_at_once.sql"),
    ),
    (
        "job_0015_one_look",
        include_str!("../sql/0015_one_look.sql"),
    ),
];

/// Any fixed number does; it is the crate's own.
const MIGRATION_LOCK: i64 = 0x6a6f_6273;

/// Brings the current schema up to date, all or nothing. May be called by many processes at once and again at will.
///
/// # Errors
/// What Postgres says.
pub fn migrate(client: &mut Client) -> Result<()> {
    let mut tx = client.transaction()?;
    tx.query_typed(
        "SELECT pg_advisory_xact_lock($1)",
        &[(&MIGRATION_LOCK, Type::INT8)],
    )?;
    tx.batch_execute(
        "CREATE TABLE IF NOT EXISTS job_migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())",
    )?;
    for (name, sql) in MIGRATIONS {
        let added = tx.query_typed(
            "INSERT INTO job_migrations (name) VALUES ($1) ON CONFLICT DO NOTHING RETURNING name",
            &[(name, Type::TEXT)],
        )?;
        if !added.is_empty() {
            tx.batch_execute(sql)?;
        }
    }
    tx.commit()?;
    Ok(())
}
